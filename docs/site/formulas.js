"use strict";
document.addEventListener("DOMContentLoaded", () => {
  for (const one of document.querySelectorAll(".tex[data-tex]")) {
    const said = one.textContent;
    try {
      katex.render(one.dataset.tex, one, {throwOnError: true});
    } catch (error) {
      one.textContent = said;
      one.classList.add("unrendered");
    }
  }
});

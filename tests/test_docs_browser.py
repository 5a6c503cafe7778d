"""The report and the site in a real browser: no errors, no requests, and everything that can be used works.

Needs `lemmata[browser]`, and Chromium with its driver from the system.
"""

import json
import shutil
from math import inf

import numpy as np
import pytest
import xarray as xr

from docs.site import build
from lemmata.measure.compare import ConditionCount, Verdict
from lemmata.measure.estimate import Estimate
from lemmata.report import Chapter, page
from lemmata.report.explore import explorable
from lemmata.status import CONVERGED, DIVERGED
from lemmata.study import study

webdriver = pytest.importorskip("selenium.webdriver", reason="needs lemmata[browser]")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # pipes of the browser's driver
    pytest.mark.skipif(
        not (shutil.which("chromium") and shutil.which("chromedriver")), reason="needs Chromium"
    ),
]

FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
VIEWS = [(width, scheme) for width in (390, 1280) for scheme in ("light", "dark")]


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of a study of the lab: every claim, with made-up numbers, and one picture with its data."""
    folder, own = tmp_path_factory.mktemp("report"), study("benign-overfitting")
    picture = folder / "p.svg"
    picture.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="300"></svg>', encoding="utf-8"
    )
    condition = ConditionCount("(2) d >= N^2 log(d)", 3, 12, 0.025, False)
    verdicts = [
        Verdict(
            *(
                claim.id,
                claim.statement,
                ("holds", "fails", "inconclusive")[number % 3],
                claim.holds.predicted,
            ),
            *(Estimate(number / 10, number / 10 - 1, number / 10 + 1, 5), (-inf, 1.0), (condition,)),
            headline=claim.headline,
            source="theorem",
        )
        for number, claim in enumerate(own.claims)
    ]
    values = np.arange(24.0).reshape(3, 4, 2)
    ends = np.full((3, 4, 2), CONVERGED)
    ends[0, 0, 1] = DIVERGED
    dims = ("samples", "signal_norm", "seed")
    labels = {"samples": [2, 4, 8], "signal_norm": [1.0, 2.0, 3.0, 4.0], "seed": [7, 8]}
    results = xr.Dataset(
        {"status": (dims, ends), "test_loss": (dims, values), "steps": (dims, values + 1)}, labels
    )
    data = explorable(results, "lemmata run benign-overfitting/fig1")
    chapter = Chapter("fig1", own.figures["fig1"], "As read.", "lemmata run x", picture, verdicts, data=data)
    path = folder / "report.html"
    path.write_text(page([(own, [chapter])]), encoding="utf-8")
    return path


def opened(browser, path, width=1280, scheme="light"):
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(path.as_uri())
    return browser


def asked(browser):
    """The addresses outside of this machine that the page asked for."""
    found = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [one["params"]["request"]["url"] for one in found if one["method"] == "Network.requestWillBeSent"]
    assert sent
    return [address for address in sent if not address.startswith(("file:", "data:", "blob:"))]


def sideways(browser):
    """By how many pixels the page is wider than the window."""
    return browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_the_report_opens_without_errors_or_requests(browser, report, width, scheme):
    opened(browser, report, width, scheme)
    assert browser.get_log("browser") == []
    assert asked(browser) == []
    assert sideways(browser) <= 0
    assert browser.execute_script("return document.querySelectorAll('.unrendered').length") == 0
    assert browser.execute_script("return document.querySelectorAll('.katex').length") > 50
    paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


def test_a_cell_tells_its_numbers_under_the_pointer_and_by_keys(browser, report):
    opened(browser, report)
    tell = "return document.querySelector('.cell').textContent"
    over = "document.querySelectorAll('.grid td')[arguments[0]].dispatchEvent(new MouseEvent('mouseenter'))"
    browser.execute_script(over, 9)  # the lowest row, second column: samples 2, norm 2
    said = browser.execute_script(tell)
    assert "2.5 at samples = 2, signal_norm = 2" in said
    assert "7: 2; 8: 3" in said
    assert "lemmata run benign-overfitting/fig1 --set samples=2 --set signal_norm=2" in said
    browser.execute_script(over, 8)
    assert "1 converged, 1 diverged" in browser.execute_script(tell)
    browser.execute_script("document.querySelector('.grid td').focus()")
    assert "samples = 8, signal_norm = 1" in browser.execute_script(tell)
    browser.switch_to.active_element.send_keys("\ue014")  # the right arrow
    assert "samples = 8, signal_norm = 2" in browser.execute_script(tell)


def test_another_variable_can_be_shown(browser, report):
    opened(browser, report)
    browser.execute_script(
        "const s = document.querySelector('.controls select'); s.value = 1; s.dispatchEvent(new Event('change'))"
    )
    assert browser.execute_script("return document.querySelector('.cell').textContent").startswith("steps")


def test_claims_are_found_filtered_and_sorted(browser, report):
    opened(browser, report)
    shown = "return [...document.querySelectorAll('tbody.claim:not([hidden])')].map(one => one.dataset.id)"
    everything = browser.execute_script(shown)
    assert len(everything) == len(study("benign-overfitting").claims)
    browser.find_element("id", "search").send_keys("boundary-exponent")
    assert "boundary-exponent" in browser.execute_script(shown)
    assert len(browser.execute_script(shown)) < 5
    browser.execute_script(
        "document.querySelector('#search').value = ''; const o = document.querySelector('#outcome');"
        "o.value = 'fails'; o.dispatchEvent(new Event('change'))"
    )
    assert 0 < len(browser.execute_script(shown)) < len(everything)
    browser.execute_script(
        "const o = document.querySelector('#outcome'); o.value = ''; o.dispatchEvent(new Event('change'));"
        "document.querySelector('th button[data-key=id]').click()"
    )
    first = browser.execute_script(
        "return [...document.querySelector('table.verdicts').tBodies].map(b => b.dataset.id)"
    )
    assert first == sorted(first, key=lambda id: id.lower())


def test_a_link_unfolds_the_code_of_a_claim(browser, report):
    opened(browser, report)
    id = "benign-overfitting/code/boundary-exponent"
    state = (
        f"return document.getElementById('{id}').open && document.getElementById('{id}').parentElement.open"
    )
    assert not browser.execute_script(state)
    browser.execute_script(f"location.hash = '{id}'")
    browser.execute_async_script("setTimeout(arguments[0], 200)")
    assert browser.execute_script(state)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("zensical", reason="needs lemmata[docs]")
    return build.build(tmp_path_factory.mktemp("site"), run=False)


PAGES = (
    "index.html",
    "gallery.html",
    "api.html",
    "studies/benign-overfitting.html",
    "tutorials/1-phase-diagram.html",
)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_the_site_opens_without_errors_or_requests(browser, site, name, width, scheme):
    opened(browser, site / name, width, scheme)
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    assert asked(browser) == []
    assert sideways(browser) <= 0
    assert browser.execute_script("return document.querySelectorAll('.unrendered').length") == 0
    if name.startswith("studies"):
        assert browser.execute_script("return document.querySelectorAll('.katex').length") > 50

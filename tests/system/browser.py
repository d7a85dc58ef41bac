# SPDX-License-Identifier: Apache-2.0
"""Looks at a page in a real browser, through the pipe that chromium has for tools.

usage: browser.py URL DIRECTORY [SELECTOR...]

Opens the page at phone and desktop width, dark and light, and leaves a screenshot of each in the directory. Every selector must match
something. Fails if the console has an error, the page asks for anything outside, or it is wider than the window."""
import fcntl, json, os, subprocess, sys, tempfile, time

url, directory, *selectors = sys.argv[1:]
# Seconds in which everything must be there.
PATIENCE = 30
os.makedirs(directory, exist_ok=True)


class Browser:
    def __init__(self, profile):
        low_read, ours_out = os.pipe()
        ours_in, low_write = os.pipe()
        # The pipe is descriptors 3 and 4. A shell moves them there; so that it overwrites neither, they go up first.
        to_read, to_write = (fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (low_read, low_write))
        os.close(low_read), os.close(low_write)
        words = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions", "--disable-background-networking",
                 "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
        command = f'exec 3<&{to_read} 4>&{to_write}; exec "$@"'
        self.process = subprocess.Popen(["bash", "-c", command, "chromium", *words], pass_fds=(to_read, to_write),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read), os.close(to_write)
        self.out, self.into = os.fdopen(ours_out, "wb", 0), os.fdopen(ours_in, "rb")
        self.number, self.events, self.rest = 0, [], b""

    def message(self):
        while b"\0" not in self.rest:
            piece = self.into.read1(1 << 16)
            if not piece:
                sys.exit("chromium has ended")
            self.rest += piece
        whole, self.rest = self.rest.split(b"\0", 1)
        return json.loads(whole)

    def call(self, method, session=None, **parameters):
        self.number += 1
        asked = {"id": self.number, "method": method, "params": parameters}
        if session:
            asked["sessionId"] = session
        self.out.write(json.dumps(asked).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.number:
                if "error" in message:
                    sys.exit(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def wait(self, method):
        while not any(e.get("method") == method for e in self.events):
            self.events.append(self.message())


def look(browser, width, height, scheme):
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    call = lambda method, **parameters: browser.call(method, session, **parameters)
    for domain in ("Page", "Runtime", "Log", "Network"):
        call(f"{domain}.enable")
    call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
    call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.events.clear()
    call("Page.navigate", url=url)
    browser.wait("Page.loadEventFired")

    def value(expression):
        result = call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    # A live page has some things only after it has asked for news.
    end = time.monotonic() + PATIENCE
    for selector in selectors:
        while not value(f"document.querySelectorAll({json.dumps(selector)}).length"):
            assert time.monotonic() < end, f"nothing on the page is '{selector}' ({width}, {scheme})"
            value("new Promise((done) => setTimeout(done, 100))")
    wide = value("document.documentElement.scrollWidth")
    assert wide <= width, f"the page is {wide} wide in a window of {width}"
    # Drawings fit the width, and their words stand inside them and on no other words.
    crowded = value("""(() => {
        const found = [], box = (e) => e.getBoundingClientRect();
        for (const svg of document.querySelectorAll("main svg")) {
            const all = box(svg), words = [...svg.querySelectorAll("text")].filter((e) => e.textContent);
            if (all.right > innerWidth + 1 || svg.parentElement.scrollWidth > svg.parentElement.clientWidth + 1) found.push("a drawing is too wide");
            words.forEach((a, i) => {
                const [p, whole] = [box(a), box(a).left >= all.left - 1 && box(a).right <= all.right + 1];
                if (!whole) found.push(`${a.textContent}: outside`);
                for (const b of words.slice(i + 1).map((e) => [box(e), e.textContent]))
                    if (p.left < b[0].right - 1 && b[0].left < p.right - 1 && p.top < b[0].bottom - 4 && b[0].top < p.bottom - 4) found.push(`${a.textContent}: on ${b[1]}`);
            });
        }
        return found;
    })()""")
    assert not crowded, (crowded, width)
    # Colours of the scheme are in force, and text can be read: contrast 4.5 or more (WCAG AA).
    contrast = value("""(() => {
        const light = (c) => { const [r, g, b] = c.match(/[0-9.]+/g).map(Number).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const back = light(getComputedStyle(document.body).backgroundColor);
        const all = [...document.querySelectorAll("h1, h2, p, td, th, caption")].map((e) => light(getComputedStyle(e).color));
        return [back, Math.min(...all.map((a) => (Math.max(a, back) + 0.05) / (Math.min(a, back) + 0.05)))];
    })()""")
    assert (contrast[0] < 0.2) == (scheme == "dark") and contrast[1] >= 4.5, contrast
    height = value("document.documentElement.scrollHeight")
    picture = call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
    import base64
    with open(os.path.join(directory, f"{width}-{scheme}.png"), "wb") as file:
        file.write(base64.b64decode(picture["data"]))
    for event in browser.events:
        method, told = event.get("method"), event.get("params", {})
        assert method != "Runtime.exceptionThrown", told
        assert not (method == "Runtime.consoleAPICalled" and told["type"] in ("error", "assert")), told
        assert not (method == "Log.entryAdded" and told["entry"]["level"] == "error"), told
        if method == "Network.requestWillBeSent":
            asked = told["request"]["url"]
            assert asked.startswith((url.rsplit("/", 1)[0], "data:", "about:")), f"the page asks for {asked}"
    browser.call("Target.closeTarget", targetId=target)
    return height


with tempfile.TemporaryDirectory() as profile:
    browser = Browser(profile)
    for width, height in ((390, 844), (1280, 800)):
        for scheme in ("light", "dark"):
            print(f"{width} {scheme}: {look(browser, width, height, scheme)} high")
    browser.call("Browser.close")
    browser.process.wait()

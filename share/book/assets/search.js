// SPDX-License-Identifier: Apache-2.0
// Searching, with lunr, which the tool that makes the book brings. The pages come as a script (search/pages.js), because a browser
// lets a page that was opened as a file read no other file.
"use strict";
(function () {
  const field = document.getElementById("search");
  const found = document.getElementById("found");
  const article = document.querySelector("article");
  if (typeof lunr === "undefined" || typeof book_pages === "undefined") return;
  field.hidden = false;
  let index = null;
  function make() {
    index = lunr(function () {
      this.ref("location");
      this.field("title", { boost: 10 });
      this.field("text");
      this.metadataWhitelist = [];
      for (const page of book_pages) this.add(page);
    });
  }
  const by_location = new Map(book_pages.map((page) => [page.location, page]));
  // Words are looked for as they are and as beginnings, and the signs that lunr would take as commands are not.
  function look(text) {
    const words = text.toLowerCase().split(/[^\p{L}\p{N}_]+/u).filter(Boolean);
    if (!words.length) return [];
    return index.query(function (query) {
      for (const word of words) {
        query.term(lunr.tokenizer(word), { boost: 10, usePipeline: true });
        query.term(word, { wildcard: lunr.Query.wildcard.TRAILING, usePipeline: false });
      }
    });
  }
  function show() {
    const text = field.value.trim();
    found.replaceChildren();
    article.hidden = text.length > 1;
    if (text.length < 2) return;
    if (!index) make();
    const hits = look(text).slice(0, 30);
    const heading = document.createElement("h1");
    heading.textContent = hits.length ? "Found" : "Nothing found";
    found.append(heading);
    for (const hit of hits) {
      const page = by_location.get(hit.ref);
      const link = document.createElement("a");
      link.href = book_base + page.location;
      link.textContent = page.title;
      link.addEventListener("click", () => { field.value = ""; show(); });
      const words = document.createElement("p");
      words.textContent = page.text.slice(0, 160);
      found.append(link, words);
    }
  }
  field.addEventListener("input", show);
  // A link can ask: index.html?q=words.
  field.value = new URLSearchParams(location.search).get("q") || "";
  if (field.value) show();
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { field.value = ""; show(); }
  });
})();

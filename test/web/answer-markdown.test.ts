import { expect, test } from "bun:test";
import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import AnswerMarkdown from "../../src/web/pages/playground/markdown.tsx";

const shown = (text: string) => renderToStaticMarkup(createElement(AnswerMarkdown, { text }));

test("the chat page renders an answer's tables, lists and code as elements", () => {
	const html = shown("| a | b |\n|---|--:|\n| 1 | `2` |\n\n- one\n- two\n\n```js\nif (a < b) {}\n```");
	for (const part of ["<th>a</th>", "<code>2</code>", "<li>one</li>", "if (a &lt; b) {}"]) expect(html).toContain(part);
});

test.each([
	["<script>alert(1)</script><b onclick=x>b</b>", /<script|<b/],
	["[a](javascript:alert(1)) [b](data:text/html,x) <javascript:alert(1)>", /(href|src)="(javascript|data)/],
	["![a](https://evil.example/p.png)", /<img/],
	["<img src=x onerror=alert(1)> <iframe src=x>", /<img|<iframe/],
])("an answer with %p can neither run scripts nor load files", (text, forbidden) => {
	expect(shown(text)).not.toMatch(forbidden);
});

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pages as german } from "../../src/base/de.json";
import { keyLabel } from "../../src/web/labels.ts";
import { t } from "../../src/web/texts.tsx";
import { pageTexts } from "../support/page-texts.ts";

const SOURCE = join(import.meta.dir, "../../src");
const scan = (pattern: string) => [...new Bun.Glob(pattern).scanSync({ cwd: SOURCE })].sort();
const texts = (path: string) => pageTexts(path, readFileSync(join(SOURCE, path), "utf8"));
const pages = scan("web/**/*.{ts,tsx}").filter((path) => !path.endsWith(".d.ts"));

/** Texts that are equal in every language: names, addresses, formats, code. */
const UNTRANSLATED: ReadonlySet<string> = new Set([
	"CSV",
	"curl",
	"Python",
	"TypeScript",
	"Environment",
	"key.revoke",
	"https://example.com/batches",
	"example.com",
	"https://login.example.com",
	"groups",
]);

describe("the catalogue of the pages", () => {
	test("has no unused text", () => {
		const quoted = new Set(
			[...pages, "console/members/roles.ts", "billing/stop-reasons.ts"].flatMap((path) => texts(path).quoted),
		);
		expect(Object.keys(german).filter((text) => !quoted.has(text))).toEqual([]);
	});

	test("has the same values and elements in both languages", () => {
		const marks = (text: string) => (text.match(/\{\w+\}|<\/?\w+>/g) ?? []).sort();
		for (const [english, text] of Object.entries(german)) {
			const forms = typeof text === "string" ? { other: text } : text;
			expect([english, marks(forms.other)]).toEqual([english, marks(english)]);
			if ("one" in forms) expect(marks(english)).toEqual(expect.arrayContaining(marks(forms.one)));
			for (const form of Object.values(forms)) expect(form.trim()).not.toBe("");
		}
	});

	test("translates equal sentences equally", () => {
		const said = new Map<string, Set<string>>();
		for (const [english, text] of Object.entries(german)) {
			const [ours, theirs] = [english, typeof text === "string" ? text : text.other].map((one) =>
				one.split(/(?<=[.?!])\s+/),
			);
			if (ours?.length !== theirs?.length) continue;
			for (const [nth, sentence] of (ours ?? []).entries())
				said.set(sentence, (said.get(sentence) ?? new Set()).add(theirs?.[nth] ?? ""));
		}
		const several = [...said].filter(([, sentences]) => sentences.size > 1).map(([english]) => english);
		// Of a card or of a request: German has two words.
		expect(several).toEqual(["Nothing was charged."]);
	});

	test("pages have no untranslated text", () => {
		const past = pages.flatMap((path) =>
			texts(path)
				.literal.filter((text) => !UNTRANSLATED.has(text))
				.map((text) => `${path}: ${text}`),
		);
		expect(past).toEqual([]);
	});

	// An object keeps only the last of two values with one label.
	test("lists of facts repeat no label in any language", () => {
		const blocks = pages.flatMap((path) =>
			[...readFileSync(join(SOURCE, path), "utf8").matchAll(/^(\t+)of=\{\{$([\s\S]*?)^\1\}\}$/gm)].map(
				([, , text = ""]) => [...text.matchAll(/^\t+\[t\("([^"]+)"\)\]:/gm)].map(([, label = ""]) => label),
			),
		);
		expect(blocks.flat().length).toBeGreaterThan(50);
		const inGerman = (label: string) => (german as Readonly<Record<string, unknown>>)[label] ?? label;
		for (const labels of [...blocks, ...blocks.map((block) => block.map(inGerman))])
			expect(labels.filter((label, at) => labels.indexOf(label as never) !== at)).toEqual([]);
	});

	test("pages do not make labels by capitalizing codes", () => {
		const raising = pages.filter((path) => /\.toUpperCase\(\) \+/.test(readFileSync(join(SOURCE, path), "utf8")));
		expect(raising).toEqual(["web/labels.ts", "web/parts/page.tsx"]);
	});

	test("isolates right-to-left names in sentences", () => {
		const shown = (name: string) => t("Your role in {name} is {role}.", { name, role: "Admin" });
		expect(shown("Alder")).toBe("Your role in Alder is Admin.");
		for (const name of ["שלום", "\u202enimdA", "سلام"])
			expect([shown(name), keyLabel({ name, lastFour: "a1b2" })]).toEqual([
				`Your role in \u2068${name}\u2069 is Admin.`,
				`\u2068${name}\u2069 …a1b2`,
			]);
	});

	test("finds text in elements, attributes, fields and choices", () => {
		const source = `
			const COLUMNS = [{ label: "Name" }, { label: t("Kept") }];
			const page = <Page title="Keys" lead={x ? "One" : t("Two")} className="none">
				Some words {[x ? "brief" : undefined, x ? undefined : t("Long")]} {count > 1 ? "requests" : \`a \${x}\`} <code>max_tokens</code> {t("Said")}
			</Page>;`;
		expect(pageTexts("made.tsx", source).literal.toSorted()).toEqual([
			"Keys",
			"Name",
			"One",
			"Some words",
			"brief",
			"requests",
		]);
	});
});

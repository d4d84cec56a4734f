import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync } from "oxc-parser";
import { pages as german } from "../../src/base/de.json";
import { keyLabel } from "../../src/web/labels.ts";
import { t } from "../../src/web/texts.tsx";

/** Texts in a page's source file: those that `t` translates, and literals that it does not. */
interface PageTexts {
	/** All string literals: a page may take a text from a lookup table, so each literal counts as a use of the text. */
	readonly quoted: readonly string[];
	/** Words that readers would see in English in every language. */
	readonly literal: readonly string[];
}

type Node = Readonly<Record<string, unknown>> & { readonly type: string };

/** Attributes and fields whose text people read. */
const FOR_PEOPLE =
	/^(label|title|description|placeholder|alt|lead|aria-label|aria-valuetext|nothingFoundMessage|empty|why)$/;
/** Elements whose content is code, which is not translated. */
const CODE = /^(code|kbd|pre|style|svg)$/;

function pageTexts(path: string, source: string): PageTexts {
	const quoted: string[] = [];
	const literal: string[] = [];
	const { program, errors } = parseSync(path, source);
	if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`);

	function visit(node: Node): void {
		const text = textOf(node);
		if (text !== undefined) quoted.push(text);
		if (node.type === "JSXText") literal.push(...said(String(node.value)));
		if (node.type === "JSXAttribute" && FOR_PEOPLE.test(nameOf(node.name))) literal.push(...saidBy(node.value));
		if (node.type === "Property" && FOR_PEOPLE.test(nameOf(node.key))) literal.push(...saidBy(node.value));
		// In an array with a translated text, both branches of each condition must be translated.
		if (node.type === "ArrayExpression" && (node.elements as unknown[]).some(isAsked))
			for (const one of node.elements as unknown[]) if (isChoice(one)) literal.push(...saidBy(one));
		if (node.type === "JSXElement" && CODE.test(nameOf((node.openingElement as Node).name))) return;
		if (node.type === "JSXElement" || node.type === "JSXFragment")
			for (const child of node.children as Node[])
				if (child.type === "JSXExpressionContainer") literal.push(...saidBy(child));
		for (const value of Object.values(node)) {
			for (const part of Array.isArray(value) ? value : [value]) if (isNode(part)) visit(part);
		}
	}
	visit(program as unknown as Node);
	return { quoted, literal: [...new Set(literal)] };
}

/** Returns the words of a text, or of both branches of a condition, that are not translated. */
function saidBy(value: unknown): string[] {
	if (!isNode(value)) return [];
	if (value.type === "JSXExpressionContainer") return saidBy(value.expression);
	if (value.type === "ConditionalExpression") return [...saidBy(value.consequent), ...saidBy(value.alternate)];
	if (value.type === "LogicalExpression") return saidBy(value.right);
	if (value.type === "TemplateLiteral") return (value.quasis as Node[]).flatMap((part) => said(cooked(part)));
	return said(textOf(value) ?? "");
}

/** True if the text is translated, in at least one branch of a condition. */
function isAsked(value: unknown): boolean {
	if (!isNode(value)) return false;
	if (isChoice(value)) return isAsked(value.consequent) || isAsked(value.alternate);
	return value.type === "CallExpression" && /^(t|plural|rich)$/.test(nameOf(value.callee));
}

const isChoice = (value: unknown): boolean => isNode(value) && value.type === "ConditionalExpression";

const said = (text: string): string[] => (/\p{L}{2}/u.test(text) ? [text.trim().replace(/\s+/g, " ")] : []);

function textOf(node: Node): string | undefined {
	if (node.type === "Literal" && typeof node.value === "string") return node.value;
	const quasis = node.quasis as Node[] | undefined;
	return node.type === "TemplateLiteral" && quasis?.length === 1 ? cooked(quasis[0] as Node) : undefined;
}

const cooked = (quasi: Node): string => (quasi.value as { cooked: string }).cooked;
const nameOf = (node: unknown): string => (isNode(node) ? String(node.name ?? node.value ?? "") : "");
const isNode = (value: unknown): value is Node =>
	typeof value === "object" && value !== null && typeof (value as Node).type === "string";

const SOURCE = join(import.meta.dir, "../../src");
const scan = (pattern: string) => [...new Bun.Glob(pattern).scanSync({ cwd: SOURCE })].sort();
const texts = (path: string) => pageTexts(path, readFileSync(join(SOURCE, path), "utf8"));
const pages = scan("web/**/*.{ts,tsx}").filter((path) => !path.endsWith(".d.ts"));

/** Texts that are the same in every language: names, addresses, formats, code. */
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

describe("the translations of the pages", () => {
	test("have no unused text", () => {
		const quoted = new Set(
			[...pages, "console/members/roles.ts", "billing/stop-reasons.ts"].flatMap((path) => texts(path).quoted),
		);
		expect(Object.keys(german).filter((text) => !quoted.has(text))).toEqual([]);
	});

	test("have the same values and elements in both languages", () => {
		const marks = (text: string) => (text.match(/\{\w+\}|<\/?\w+>/g) ?? []).sort();
		for (const [english, text] of Object.entries(german)) {
			const forms = typeof text === "string" ? { other: text } : text;
			expect([english, marks(forms.other)]).toEqual([english, marks(english)]);
			if ("one" in forms) expect(marks(english)).toEqual(expect.arrayContaining(marks(forms.one)));
			for (const form of Object.values(forms)) expect(form.trim()).not.toBe("");
		}
	});

	test("are equal for equal sentences", () => {
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
		// German needs two words: "Nothing was charged." is about cards and about requests.
		expect(several).toEqual(["Nothing was charged."]);
	});

	test("are used for every text of the pages", () => {
		const past = pages.flatMap((path) =>
			texts(path)
				.literal.filter((text) => !UNTRANSLATED.has(text))
				.map((text) => `${path}: ${text}`),
		);
		expect(past).toEqual([]);
	});

	// In an object with a repeated label only the last value would be shown.
	test("have each label of a list once in every language", () => {
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

	test("are used instead of capitalized codes", () => {
		const raising = pages.filter((path) => /\.toUpperCase\(\) \+/.test(readFileSync(join(SOURCE, path), "utf8")));
		expect(raising).toEqual(["web/labels.ts", "web/parts/page.tsx"]);
	});

	test("isolate right-to-left names in sentences", () => {
		const shown = (name: string) => t("Your role in {name} is {role}.", { name, role: "Admin" });
		expect(shown("Alder")).toBe("Your role in Alder is Admin.");
		for (const name of ["שלום", "\u202enimdA", "سلام"])
			expect([shown(name), keyLabel({ name, lastFour: "a1b2" })]).toEqual([
				`Your role in \u2068${name}\u2069 is Admin.`,
				`\u2068${name}\u2069 …a1b2`,
			]);
	});
});

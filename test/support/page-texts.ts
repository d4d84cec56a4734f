import { parseSync } from "oxc-parser";

/** Texts of a page's source file: those that it takes from the catalogue, and those that it contains itself. */
export interface PageTexts {
	/** Every quoted text, since a text may be chosen from a table. */
	readonly quoted: readonly string[];
	/** Words that a reader would see in English in every language. */
	readonly literal: readonly string[];
}

type Node = Readonly<Record<string, unknown>> & { readonly type: string };

/** Attributes and fields whose text is for people. */
const FOR_PEOPLE =
	/^(label|title|description|placeholder|alt|lead|aria-label|aria-valuetext|nothingFoundMessage|empty|why)$/;
/** Elements whose content is code. */
const CODE = /^(code|kbd|pre|style|svg)$/;

export function pageTexts(path: string, source: string): PageTexts {
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
		// Names in catalogue texts, which are translated with them.
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

/** The words of a quoted text, or of a choice between several, without catalogue texts. */
function saidBy(value: unknown): string[] {
	if (!isNode(value)) return [];
	if (value.type === "JSXExpressionContainer") return saidBy(value.expression);
	if (value.type === "ConditionalExpression") return [...saidBy(value.consequent), ...saidBy(value.alternate)];
	if (value.type === "LogicalExpression") return saidBy(value.right);
	if (value.type === "TemplateLiteral") return (value.quasis as Node[]).flatMap((part) => said(cooked(part)));
	return said(textOf(value) ?? "");
}

/** Whether it is taken from the catalogue, in at least one of its cases. */
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

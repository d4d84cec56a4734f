import { parseSync } from "oxc-parser";

type Node = Readonly<Record<string, unknown>> & { readonly type: string };

/** What refuses, and what its message is handed to on the way there. */
const REFUSES = /^(Fault|KeyFault|Refusal)$/;
const HANDS_ON = /^(check|refuse|faultOfSql|badInput|missing|invalid|notJson)$/;

/** The messages that a file refuses with, as they stand in it; a value in one is `x1`. */
export function faultTexts(path: string, source: string): readonly string[] {
	const texts: string[] = [];
	const { program, errors } = parseSync(path, source);
	if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`);

	function visit(node: Node): void {
		const callee = String((node.callee as Node | undefined)?.name ?? "");
		if (
			(node.type === "NewExpression" && REFUSES.test(callee)) ||
			(node.type === "CallExpression" && HANDS_ON.test(callee))
		)
			for (const argument of node.arguments as Node[]) {
				const text = textOf(argument);
				// A code, and the name of a field, are one word.
				if (text !== undefined && /[ ]/.test(text)) texts.push(text);
			}
		for (const value of Object.values(node)) {
			for (const part of Array.isArray(value) ? value : [value]) if (isNode(part)) visit(part);
		}
	}
	visit(program as unknown as Node);
	return texts;
}

function textOf(node: Node): string | undefined {
	if (node.type === "Literal" && typeof node.value === "string") return node.value;
	if (node.type !== "TemplateLiteral") return undefined;
	return (node.quasis as { value: { cooked: string } }[]).map(({ value }) => value.cooked).join("x1");
}

const isNode = (value: unknown): value is Node =>
	typeof value === "object" && value !== null && typeof (value as Node).type === "string";

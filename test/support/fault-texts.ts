import { parseSync } from "oxc-parser";

type Node = Readonly<Record<string, unknown>> & { readonly type: string };

/** Functions that create faults, and those that receive their texts. */
const REFUSES = /^(Fault|KeyFault|ConsoleError)$/;
const HANDS_ON = /^(check|refuse|faultOfSql|badInput|missing|invalid|notJson|problemOf|signInError|write)$/;

/** A text of a fault in a file, the names of its values, and the code before it. */
export interface FaultText {
	/** Marks a value inserted into the text (`x1`): such a text has no translation. */
	readonly text: string;
	readonly values: readonly string[];
	readonly code: string;
}

export function faultTexts(path: string, source: string): readonly FaultText[] {
	const texts: FaultText[] = [];
	const { program, errors } = parseSync(path, source);
	if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`);

	function visit(node: Node): void {
		const callee = String((node.callee as Node | undefined)?.name ?? "");
		if (
			(node.type === "NewExpression" && REFUSES.test(callee)) ||
			(node.type === "CallExpression" && HANDS_ON.test(callee))
		) {
			const given = node.arguments as Node[];
			const values = given.flatMap(valuesOf);
			const [code = ""] = given.map(textOf).filter((text) => text !== undefined);
			for (const argument of given) {
				const text = textOf(argument);
				if (text !== undefined && /[ ]/.test(text)) texts.push({ text, values, code });
			}
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

/** Names in `{ values: { … } }`, and in `{ … }` itself. */
function valuesOf(node: Node): string[] {
	if (node.type !== "ObjectExpression") return [];
	return (node.properties as Node[]).flatMap((property) => {
		const name = String((property.key as Node | undefined)?.name ?? "");
		return name === "values" ? valuesOf(property.value as Node) : [name];
	});
}

const isNode = (value: unknown): value is Node =>
	typeof value === "object" && value !== null && typeof (value as Node).type === "string";

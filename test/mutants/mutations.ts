/** Generates faults: each changes one position of a source file as a programmer's mistake might. */
import { parseSync } from "oxc-parser";

export interface Mutation {
	readonly file: string;
	readonly line: number;
	readonly change: string;
	readonly start: number;
	readonly end: number;
	readonly replacement: string;
}

/** The fields of a syntax tree node that this file uses. */
interface Node {
	readonly type: string;
	readonly start: number;
	readonly end: number;
	readonly [field: string]: unknown;
}

const NEGATED: Readonly<Record<string, string>> = {
	"<": ">=",
	">=": "<",
	">": "<=",
	"<=": ">",
	"===": "!==",
	"!==": "===",
};
const SWAPPED: Readonly<Record<string, string>> = {
	"+": "-",
	"-": "+",
	"+=": "-=",
	"-=": "+=",
	"&&": "||",
	"||": "&&",
};
const FUNCTIONS = ["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"];
const SHOWN_MAX = 90;
/** Statements whose effects tests cannot observe: log lines and assertions. */
const UNSEEN = /^(?:await )?(?:(?:\w+\.)*log\.\w+|assert)\(/;

export function mutationsOf(file: string, text: string): Mutation[] {
	const mutations: Mutation[] = [];
	const add = (start: number, end: number, replacement: string) => {
		const line = text.slice(0, start).split("\n").length;
		const shown = (part: string) => part.replaceAll(/\s+/g, " ").trim().slice(0, SHOWN_MAX);
		const context = text.split("\n")[line - 1] ?? "";
		const what = text.slice(start, end);
		const change =
			what.length === 0
				? `return at the start: ${shown(context)}`
				: replacement === ""
					? `drop: ${shown(what)}`
					: `${what.trim()} becomes ${replacement.trim()} in: ${shown(context)}`;
		mutations.push({ file, line, change, start, end, replacement });
	};
	visit(parseSync(file, text).program as unknown as Node, (node) => {
		if (node.type === "BinaryExpression" || node.type === "LogicalExpression" || node.type === "AssignmentExpression") {
			const operator = node.operator as string;
			const other = NEGATED[operator] ?? SWAPPED[operator];
			const [left, right] = [node.left as Node, node.right as Node];
			if (other === undefined || (/[+]/.test(operator) && (isText(left) || isText(right)))) return;
			const at = text.indexOf(operator, left.end);
			// Next to another operator, the changed one may bind differently, so that the text no longer parses.
			add(at, at + operator.length, other);
		}
		if (node.type === "ExpressionStatement" && typeof node.directive !== "string") {
			if (!UNSEEN.test(text.slice(node.start, node.end))) add(node.start, node.end, "");
		}
		const body = node.body as Node | undefined;
		if (FUNCTIONS.includes(node.type) && body?.type === "BlockStatement" && !givesValue(body)) {
			const [first] = body.body as Node[];
			if (first !== undefined && (body.body as Node[]).length > 1) add(first.start, first.start, "return;\n");
		}
	});
	return mutations.sort((a, b) => a.start - b.start || a.end - b.end);
}

/** The changed text; undefined if it does not parse. */
export function applyMutation(text: string, { file, start, end, replacement }: Mutation): string | undefined {
	// Replaces a statement by an empty one, because it may be the only statement of an `if`.
	const isSql = file.endsWith(".sql");
	const changed = text.slice(0, start) + (replacement === "" && !isSql ? ";" : replacement) + text.slice(end);
	if (isSql) return changed;
	return parseSync(file, changed).errors.length === 0 ? changed : undefined;
}

function visit(node: Node, see: (node: Node) => void): void {
	// Skips types, which have no effect at run time.
	if (
		node.type.startsWith("TS") &&
		!["TSAsExpression", "TSNonNullExpression", "TSSatisfiesExpression"].includes(node.type)
	)
		return;
	see(node);
	for (const child of childrenOf(node)) visit(child, see);
}

function* childrenOf(node: Node): Generator<Node> {
	for (const value of Object.values(node)) {
		for (const child of Array.isArray(value) ? value : [value])
			if (typeof child === "object" && child !== null && typeof (child as Node).type === "string") yield child as Node;
	}
}

const isText = ({ type, value }: Node) =>
	type === "TemplateLiteral" || (type === "Literal" && typeof value === "string");

/** True if the function itself, without nested functions, has a `return` with a value. */
function givesValue(node: Node): boolean {
	if (node.type === "ReturnStatement" && node.argument !== null) return true;
	return [...childrenOf(node)].some((child) => !FUNCTIONS.includes(child.type) && givesValue(child));
}

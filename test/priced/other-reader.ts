import { type ParseError, visit } from "jsonc-parser";

/** A body as an independent parser reads it. */
export interface ReadBody {
	readonly value: unknown;
	/** Names that occur twice in one object, on any level. */
	readonly doubled: readonly string[];
	readonly errors: readonly ParseError[];
}

/** Parses by events, so that repeated names are seen. The first value counts here: the opposite of JSON.parse. */
export function readOtherwise(text: string): ReadBody {
	const doubled: string[] = [];
	const errors: ParseError[] = [];
	const stack: { container: Map<string, unknown> | unknown[]; name: string }[] = [];
	let root: unknown;

	function put(value: unknown): void {
		const top = stack.at(-1);
		if (top === undefined) root = value;
		else if (Array.isArray(top.container)) top.container.push(value);
		else if (top.container.has(top.name)) doubled.push(top.name);
		else top.container.set(top.name, value);
	}
	const open = (container: Map<string, unknown> | unknown[]) => {
		put(container);
		stack.push({ container, name: "" });
	};

	visit(
		text,
		{
			onObjectBegin: () => open(new Map()),
			onArrayBegin: () => open([]),
			onObjectEnd: () => void stack.pop(),
			onArrayEnd: () => void stack.pop(),
			onObjectProperty(name) {
				(stack.at(-1) as { name: string }).name = name;
			},
			onLiteralValue: put,
			onError: (error, offset, length) => void errors.push({ error, offset, length }),
		},
		{ disallowComments: true, allowTrailingComma: false },
	);
	return { value: root, doubled, errors };
}

/** UTF-8 bytes of all text in a value; other values count the bytes of their JSON. */
export function textBytesOf(value: unknown): number {
	if (typeof value === "string") return Buffer.byteLength(value);
	if (Array.isArray(value)) return value.reduce<number>((sum, one) => sum + textBytesOf(one), 0);
	if (value instanceof Map) return [...value.values()].reduce<number>((sum, one) => sum + textBytesOf(one), 0);
	return value === null || value === undefined ? 0 : String(value).length;
}

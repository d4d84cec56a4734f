/**
 * Reads a YAML document field by field and collects every mistake with its line. `${NAME}` in scalars is replaced after
 * parsing, so that the value of a variable cannot add fields.
 */
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";
import type { Environment } from "../base/environment-reader.ts";
import { isOneEditAway, normalizeWord } from "../base/near-word.ts";

export interface YamlProblem {
	/** Line number from 1; 0 if the problem concerns no line. */
	readonly line: number;
	readonly message: string;
}

/** A mapping whose field names were checked. */
export type YamlMap = ReturnType<typeof mapOf>;

/** Reads fields. The functions return undefined for a missing field and for a field with a mistake. */
export type YamlReader = ReturnType<typeof createYamlReader>;

type Place = Pick<YamlField, "line" | "path">;
const PROBLEMS_MAX = 1000;

export function createYamlReader(text: string, env: Environment) {
	const counter = new LineCounter();
	const document = parseDocument(text, { lineCounter: counter, prettyErrors: false, stringKeys: true });
	const found: YamlProblem[] = [];
	const odd: YamlProblem[] = [];

	const note = (line: number, message: string) => {
		if (found.length < PROBLEMS_MAX) found.push({ line, message });
	};
	const report = (at: Place, message: string) => note(at.line, `${at.path}: ${message}`);
	const lineOf = (node: Node, otherwise: number) =>
		node.range ? Math.max(1, counter.linePos(node.range[0]).line) : otherwise;

	noteSyntax(text, document, counter, note);

	/** A node as a field, with YAML aliases resolved; its line is that of the alias. Undefined for an empty value. */
	function fieldOf(raw: unknown, path: string, otherwise: number): YamlField | undefined {
		const node = raw as Node | null;
		if (node === null) return undefined;
		const line = lineOf(node, otherwise);
		const target = isAlias(node) ? node.resolve(document) : node;
		if (target === undefined) {
			report({ line, path }, `the anchor of the alias ${quoteValue(String(node))} is missing`);
			return undefined;
		}
		if (isScalar(target) && target.value === null) return undefined;
		return { path, line, node: target };
	}

	/** Reads a mapping. Reports field names that are neither in `known` nor accepted by `extra`. */
	function map(field: YamlField | undefined, known: readonly string[], extra = (_name: string) => false) {
		if (field === undefined) return undefined;
		if (!isMap(field.node)) {
			report(field, "must be a mapping of fields");
			return undefined;
		}
		const fields = new Map<string, YamlField>();
		for (const pair of field.node.items) {
			const key = pair.key as Node;
			const name = isScalar(key) ? String(key.value) : "";
			const line = lineOf(key, field.line);
			const path = field.path === "file" ? name : `${field.path}.${name}`;
			if (!known.includes(name)) {
				if (!extra(name)) report({ line, path: field.path }, `unknown field ${quoteValue(name)}${hint(name, known)}`);
				continue;
			}
			const value = fieldOf(pair.value, path, line);
			if (value !== undefined) fields.set(name, value);
		}
		return mapOf(field, fields, report);
	}

	/** Reads a list. Reports a list with more than `itemsMax` items. */
	function list(field: YamlField | undefined, itemsMax: number): YamlField[] | undefined {
		if (field === undefined) return undefined;
		if (!isSeq(field.node)) {
			report(field, "must be a list");
			return undefined;
		}
		if (field.node.items.length > itemsMax) {
			report(field, `has ${field.node.items.length} entries; the maximum is ${itemsMax}`);
			return undefined;
		}
		const items: YamlField[] = [];
		for (const [index, item] of field.node.items.entries()) {
			const path = `${field.path}[${index}]`;
			const value = fieldOf(item, path, field.line);
			if (value === undefined) report({ line: item ? lineOf(item as Node, field.line) : field.line, path }, "is empty");
			else items.push(value);
		}
		return items;
	}

	// With duplicate names the document is still usable; after any other error its tree is unreliable.
	const usable = document.errors.every((error) => error.code === "DUPLICATE_KEY");
	const root = usable ? fieldOf(document.contents, "file", 1) : undefined;
	if (usable && root === undefined) note(1, "the file is empty");

	return {
		/** Undefined if the text is empty or not valid YAML; the mistake was then reported. */
		root,
		report,
		/** Reports a doubtful setting with which the service can still run. */
		warn(at: Place, message: string) {
			if (odd.length < PROBLEMS_MAX) odd.push({ line: at.line, message: `${at.path}: ${message}` });
		},
		problems: () => found.toSorted((a, b) => a.line - b.line),
		warnings: () => odd.toSorted((a, b) => a.line - b.line),
		map,
		list,
		...createScalarReader(report, env),
	};
}

function mapOf(
	{ path, line }: YamlField,
	fields: ReadonlyMap<string, YamlField>,
	report: (at: Place, message: string) => void,
) {
	return {
		path,
		line,
		/** Undefined if the field is absent or left empty. */
		get: (name: string) => fields.get(name),
		/** Like `get`, but reports a missing field with the line of the mapping. */
		require(name: string) {
			const value = fields.get(name);
			if (value === undefined) report({ path, line }, `the field ${quoteValue(name)} is missing`);
			return value;
		},
	};
}

/** Reports YAML syntax errors, at most one per line, because one mistake can cause several. */
function noteSyntax(
	text: string,
	document: Document,
	counter: LineCounter,
	note: (line: number, message: string) => void,
): void {
	const lines = new Set<number>();
	for (const error of [...document.errors, ...document.warnings]) {
		const { line } = counter.linePos(error.pos[0]);
		if (lines.has(line)) continue;
		lines.add(line);
		const unquoted = /[{[,].*\$\{/.test(text.split("\n", line)[line - 1] ?? "");
		const advice = unquoted ? `; inside {} and [] a variable needs quotes: "\${NAME}"` : "";
		// Replaces the library's message, which is written for programmers.
		const problem =
			error.code === "MULTIPLE_DOCS" ? "a line of --- starts a second document; remove it" : error.message;
		note(line, `not valid YAML: ${problem}${advice}`);
	}
}

function hint(name: string, known: readonly string[]): string {
	const plain = normalizeWord(name);
	const near =
		known.find((other) => normalizeWord(other) === plain) ?? known.find((other) => isOneEditAway(other, name));
	return near === undefined ? `; known are ${known.join(", ")}` : `; did you mean ${quoteValue(near)}?`;
}

export interface YamlField {
	/** Path in error messages: `models[0].rates.input`. */
	readonly path: string;
	readonly line: number;
	readonly node: Node;
}

export interface YamlScalar {
	/** The text as in the file, which may be shown in messages. */
	readonly written: string;
	/** The value after variables were replaced. It may be a secret. */
	readonly value: unknown;
	readonly substituted: boolean;
}

const SHOWN_LENGTH_MAX = 60;
/** `${NAME}` is a variable; `$${NAME}` is the literal text `${NAME}`. */
const VARIABLE = /\$(\$?)\{([^}]*)\}/g;
const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * Reads single values. The functions return undefined for a missing field, a mistake, or a variable without a value.
 * The caller may then use a default, because a file with a mistake is refused as a whole.
 */
function createScalarReader(report: (at: YamlField, message: string) => void, env: Environment) {
	function scalar(field: YamlField): YamlScalar | undefined {
		const { node } = field;
		if (!isScalar(node)) {
			report(field, "must be a single value");
			return undefined;
		}
		const written = typeof node.value === "string" ? node.value : (node.source ?? String(node.value));
		if (typeof node.value !== "string") return { written, value: node.value, substituted: false };
		return substitute(node.value, field);
	}

	function substitute(written: string, field: YamlField): YamlScalar | undefined {
		let complete = true;
		let substituted = false;
		const value = written.replace(VARIABLE, (whole, dollar: string, name: string) => {
			if (dollar !== "") return whole.slice(1);
			const filled = VARIABLE_NAME.test(name) && Object.hasOwn(env, name) ? env[name] : undefined;
			if (filled === undefined) {
				complete = false;
				report(field, `the environment variable ${quoteValue(name)} is not set`);
				return "";
			}
			substituted = true;
			return filled;
		});
		return complete ? { written, value, substituted } : undefined;
	}

	/** Reads a string; reports `rule` if `fits` refuses it. */
	function text(
		field: YamlField | undefined,
		fits: RegExp | ((text: string) => boolean) = () => true,
		rule: string | ((text: string) => string) = "",
	): string | undefined {
		const read = field && scalar(field);
		if (field === undefined || read === undefined) return undefined;
		const { value } = read;
		if (typeof value !== "string") report(field, `must be text, got ${quoteValue(read.written)}; put it in quotes`);
		else if (typeof fits === "function" ? fits(value) : fits.test(value)) return value;
		else report(field, typeof rule === "string" ? rule : rule(value));
		return undefined;
	}

	function number(
		field: YamlField | undefined,
		bounds: { min: number; max: number; integer: boolean },
	): number | undefined {
		const read = field && scalar(field);
		if (field === undefined || read === undefined) return undefined;
		// Variables are always strings, so the value of a variable that consists of digits is taken as a number.
		const digits = read.substituted && /^\d{1,15}(\.\d{1,15})?$/.test(read.value as string);
		const value = digits ? Number(read.value) : read.value;
		const what = bounds.integer ? "a whole number" : "a number";
		const fits =
			typeof value === "number" &&
			value >= bounds.min &&
			value <= bounds.max &&
			(!bounds.integer || Number.isSafeInteger(value));
		if (fits) return value;
		report(field, `must be ${what} from ${bounds.min} to ${bounds.max}, got ${gotOf(read)}`);
		return undefined;
	}

	function flag(field: YamlField | undefined): boolean | undefined {
		const read = field && scalar(field);
		if (field === undefined || read === undefined) return undefined;
		if (typeof read.value === "boolean") return read.value;
		if (read.substituted && (read.value === "true" || read.value === "false")) return read.value === "true";
		report(field, `must be true or false, got ${gotOf(read)}`);
		return undefined;
	}

	function choice<T extends string>(field: YamlField | undefined, options: readonly T[]): T | undefined {
		const read = field && scalar(field);
		if (field === undefined || read === undefined) return undefined;
		const chosen = options.find((option) => option === read.value);
		if (chosen === undefined) report(field, `must be one of ${options.join(", ")}; got ${quoteValue(read.written)}`);
		return chosen;
	}

	return { scalar, text, number, flag, choice };
}

/** Describes the found value. Says "text" for quoted digits, true and false, which look correct. */
function gotOf({ written, value, substituted }: YamlScalar): string {
	const isQuoted = typeof value === "string" && !substituted && /^(-?\d+(\.\d+)?|true|false)$/.test(value.trim());
	return isQuoted ? `text: write ${value.trim()} without quotes` : quoteValue(written);
}

/** A text of the file for messages: quoted, shortened, without line ends. */
export function quoteValue(text: string): string {
	return JSON.stringify(text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text);
}

import { isScalar, type Node } from "yaml";
import type { Environment } from "../base/environment-reader.ts";

/** A value in the document. */
export interface YamlField {
	/** The path in messages: `models[0].rates.input`. */
	readonly path: string;
	readonly line: number;
	readonly node: Node;
}

export interface Scalar {
	/** The text in the file; safe to show. */
	readonly written: string;
	/** The value with variables filled in; may be a secret. */
	readonly value: unknown;
	readonly substituted: boolean;
}

/**
 * Reads single values. Each function returns undefined for an absent field, after a problem, or if a variable has no
 * value. A file with a problem is refused as a whole, so a default may stand for any of these.
 */
export type ScalarReader = ReturnType<typeof createScalarReader>;

const SHOWN_LENGTH_MAX = 60;
/** `$${NAME}` is an escaped `${NAME}`. */
const VARIABLE = /\$(\$?)\{([^}]*)\}/g;
const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

export function createScalarReader(report: (at: YamlField, message: string) => void, env: Environment) {
	function scalar(field: YamlField): Scalar | undefined {
		const { node } = field;
		if (!isScalar(node)) {
			report(field, "must be a single value");
			return undefined;
		}
		const written = typeof node.value === "string" ? node.value : (node.source ?? String(node.value));
		if (typeof node.value !== "string") return { written, value: node.value, substituted: false };
		return substitute(node.value, field);
	}

	function substitute(written: string, field: YamlField): Scalar | undefined {
		let complete = true;
		let substituted = false;
		const value = written.replace(VARIABLE, (whole, dollar: string, name: string) => {
			if (dollar !== "") return whole.slice(1);
			const filled = VARIABLE_NAME.test(name) && Object.hasOwn(env, name) ? env[name] : undefined;
			if (filled === undefined) {
				complete = false;
				report(field, `the environment variable ${show(name)} is not set`);
				return "";
			}
			substituted = true;
			return filled;
		});
		return complete ? { written, value, substituted } : undefined;
	}

	/** A text that `fits`; for another one `rule` is reported. */
	function text(
		field: YamlField | undefined,
		fits: RegExp | ((text: string) => boolean) = () => true,
		rule: string | ((text: string) => string) = "",
	): string | undefined {
		const read = field && scalar(field);
		if (field === undefined || read === undefined) return undefined;
		const { value } = read;
		if (typeof value !== "string") report(field, `must be text, got ${show(read.written)}; put it in quotes`);
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
		// A variable's value is text; digits in it are meant as a number.
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
		if (chosen === undefined) report(field, `must be one of ${options.join(", ")}; got ${show(read.written)}`);
		return chosen;
	}

	return { scalar, text, number, flag, choice };
}

/** Quoted digits, true and false are text but look right, so the message explains it. */
function gotOf({ written, value, substituted }: Scalar): string {
	const isQuoted = typeof value === "string" && !substituted && /^(-?\d+(\.\d+)?|true|false)$/.test(value.trim());
	return isQuoted ? `text: write ${value.trim()} without quotes` : show(written);
}

/** Text of the file for a message: quoted, cut, without line ends. */
export function show(text: string): string {
	return JSON.stringify(text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text);
}

import type { ReactNode } from "react";
import { createElement, Fragment } from "react";
import type { pages } from "../base/de.json";
import { ENGLISH, isLanguage, type Language } from "../base/language.ts";
import { CATALOGUE } from "./catalogue.ts";

/**
 * What pages say. A text stands in English where it is shown and is its own key: `t("Create a key")`; the catalogue of
 * another language has the same keys, and a text that is not in it does not compile. So English costs nothing, and
 * another language is a script of its own before that of the pages (`pages/pages.ts`). The language is that of the document
 * and holds until it is loaded anew: texts may stand outside of components.
 *
 * `{name}` is a value; `<link>…</link>` a stretch that `rich` hands to whom draws it. What says two things in English
 * says which behind a bar, which is not shown: `t("Open|state")`.
 */

/** Of a text that is counted: `{count}` is in both. */
interface Forms {
	readonly one: string;
	readonly other: string;
}

type German = typeof pages;
type Text = keyof German;
type Counted = { [K in Text]: German[K] extends Forms ? K : never }[Text];

type Names<T> = T extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never;
type Tags<T> = T extends `${string}</${infer Name}>${infer Rest}` ? Name | Tags<Rest> : never;
type Values<T, Value> = { readonly [Name in Names<T>]: Value };
type Given<T> = [Names<T>] extends [never] ? [] : [values: Values<T, string | number>];

/** As the document says it, which the server has from the reader; English outside of a browser. */
export const language: Language = documentLanguage();

/** Undefined in English. A script of texts that did not arrive leaves the pages in English, and working. */
const catalogue = (globalThis as Readonly<Record<string, unknown>>)[CATALOGUE] as
	| Readonly<Record<string, string | Forms>>
	| undefined;

/** The reader's own region where it speaks this language: its order of day and month. */
export const locale: string = globalThis.navigator?.languages?.find((one) => one.startsWith(language)) ?? language;

const rules = new Intl.PluralRules(language);

/** A text in the reader's language. */
export function t<const T extends Text>(text: T, ...[values]: Given<T>): string {
	const found = catalogue?.[text];
	return filled(typeof found === "string" ? found : withoutNote(text), values);
}

/** A text with a number in it: `{count}`, as it is shown, beside others. `other` is the key. */
export function plural<const T extends Counted>(
	count: number,
	forms: { readonly one: string; readonly other: T },
	values: Values<T, string | number>,
): string {
	const found = catalogue?.[forms.other];
	const chosen = typeof found === "object" ? found : { one: forms.one, other: withoutNote(forms.other) };
	return filled(rules.select(count) === "one" ? chosen.one : chosen.other, values);
}

type Parts<T> = Values<T, ReactNode> & { readonly [Tag in Tags<T>]: (inner: string) => ReactNode };

/** A sentence with elements in it, in the order of the reader's language. */
export function rich<const T extends Text>(text: T, parts: Parts<T>): ReactNode {
	const found = catalogue?.[text];
	const sentence = typeof found === "string" ? found : withoutNote(text);
	const draw = parts as Readonly<Record<string, ReactNode | ((inner: string) => ReactNode)>>;
	const pieces = sentence.split(/(\{\w+\}|<\w+>.*?<\/\w+>)/).map((piece) => {
		const [, value, tag, inner = ""] = /^(?:\{(\w+)\}|<(\w+)>(.*)<\/\w+>)$/.exec(piece) ?? [];
		const name = value ?? tag;
		if (name === undefined) return piece;
		const part = draw[name];
		if (typeof part === "function") return part(inner);
		return typeof part === "string" ? isolated(part) : part;
	});
	return createElement(Fragment, null, ...pieces);
}

function filled(text: string, values: Readonly<Record<string, string | number>> | undefined): string {
	return values === undefined
		? text
		: text.replace(/\{(\w+)\}/g, (mark, name: string) => isolated(String(values[name] ?? mark)));
}

/** Of Hebrew and Arabic, and signs that turn what follows them. */
const TURNING = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]/;

/** A name between marks that keep its direction from what stands beside it. */
export function isolated(text: string): string {
	return TURNING.test(text) ? `\u2068${text}\u2069` : text;
}

function withoutNote(text: string): string {
	return text.replace(/\|[a-z ]+$/, "");
}

function documentLanguage(): Language {
	const said = globalThis.document?.documentElement.lang;
	return isLanguage(said) ? said : ENGLISH;
}

/** A word that stands alone, as it is within a sentence: German keeps its nouns as they are. */
export const inSentence = (word: string): string => (language === "de" ? word : word.toLowerCase());

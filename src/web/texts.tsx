import { createElement, Fragment, type ReactNode } from "react";
import type { pages } from "../base/de.json";
import { ENGLISH, isLanguage, type Language } from "../base/language.ts";
import { TEXTS_GLOBAL } from "./catalogue.ts";

/**
 * Texts of pages. The English text is its key, `t("Create a key")`; a missing translation does not compile. English
 * needs no catalogue. Another language is a script that loads before the pages (`pages/pages.ts`). The language is
 * fixed until a reload, so texts may be used outside components. `{name}` is a value; `<link>…</link>` an element for
 * `rich`. A suffix after a bar separates two meanings of a text and is not shown: `t("Open|state")`.
 */

/** Singular and plural of a text; both contain `{count}`. */
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

/** Language of the document, which the server chose; English if there is no document. */
export const language: Language = documentLanguage();

/** Undefined for English, and if the language's script did not load: then texts are English. */
const catalogue = (globalThis as Readonly<Record<string, unknown>>)[TEXTS_GLOBAL] as
	| Readonly<Record<string, string | Forms>>
	| undefined;

/** Locale for dates: the browser's first locale with the page's language. It decides the order of day and month. */
export const locale: string = globalThis.navigator?.languages?.find((one) => one.startsWith(language)) ?? language;

const rules = new Intl.PluralRules(language);

/** Returns a text in the page's language, with values inserted. */
export function t<const T extends Text>(text: T, ...[values]: Given<T>): string {
	const found = catalogue?.[text];
	return filled(typeof found === "string" ? found : withoutNote(text), values);
}

/** Returns the singular or plural with `{count}` formatted. The English plural (`other`) is the key. */
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

/** Returns a sentence that contains elements, placed as the page's language requires. */
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
		return typeof part === "string" ? isolatedText(part) : part;
	});
	return createElement(Fragment, null, ...pieces);
}

function filled(text: string, values: Readonly<Record<string, string | number>> | undefined): string {
	return values === undefined
		? text
		: text.replace(/\{(\w+)\}/g, (mark, name: string) => isolatedText(String(values[name] ?? mark)));
}

/** Hebrew and Arabic letters, and control characters that change the text's direction. */
const TURNING = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]/;

/** Isolates a name, so that its letters cannot change the direction of the text around it. */
export function isolatedText(text: string): string {
	return TURNING.test(text) ? `\u2068${text}\u2069` : text;
}

function withoutNote(text: string): string {
	return text.replace(/\|[a-z ]+$/, "");
}

function documentLanguage(): Language {
	const said = globalThis.document?.documentElement.lang;
	return isLanguage(said) ? said : ENGLISH;
}

/** Returns a label for use within a sentence: in lower case, but unchanged in German, whose nouns are capitalized. */
export const inSentence = (word: string): string => (language === "de" ? word : word.toLowerCase());

/** Languages of pages and mails, by code, each with its name in that language. */
export const LANGUAGES = { en: "English", de: "Deutsch" } as const;

export type Language = keyof typeof LANGUAGES;

/** Cookie that stores a reader's choice of language. Pages write it; the server reads it to render a document. */
export const LANGUAGE_COOKIE = "tollgate.language";

export const ENGLISH: Language = "en";

/** Maximum number of language ranges of `accept-language` that are read. */
const RANGES_MAX = 20;

export function isLanguage(text: unknown): text is Language {
	return typeof text === "string" && Object.hasOwn(LANGUAGES, text);
}

/** The reader's choice in this browser, else the language of `accept-language` (RFC 9110, 12.5.4), else English. */
export function requestLanguage(headers: Headers): Language {
	const cookies = headers.get("cookie") ?? "";
	const chosen = cookies.split(/;\s*/).find((one) => one.startsWith(`${LANGUAGE_COOKIE}=`));
	const language = chosen?.slice(LANGUAGE_COOKIE.length + 1);
	return isLanguage(language) ? language : accepted(headers.get("accept-language") ?? "");
}

/** The first supported language with the highest weight. A range such as `de-AT` counts as `de`. */
function accepted(ranges: string): Language {
	let best: { language: Language; weight: number } | undefined;
	for (const range of ranges.split(",").slice(0, RANGES_MAX)) {
		const [tag = "", ...parameters] = range
			.trim()
			.toLowerCase()
			.split(/\s*;\s*/);
		const language = tag === "*" ? ENGLISH : tag.split("-")[0];
		const given = parameters.find((one) => one.startsWith("q="))?.slice(2);
		const weight = given === undefined ? 1 : Number(given);
		if (isLanguage(language) && weight > (best?.weight ?? 0)) best = { language, weight };
	}
	return best?.language ?? ENGLISH;
}

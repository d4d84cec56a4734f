/** The languages that pages and mails are written in, each by its own name. */
export const LANGUAGES = { en: "English", de: "Deutsch" } as const;

export type Language = keyof typeof LANGUAGES;

/** What a browser keeps of a choice; pages write it, the server reads it before it draws one. */
export const LANGUAGE_COOKIE = "tollgate.language";

/** What nobody asked for is in English. */
export const ENGLISH: Language = "en";

/** More ranges than this are no wish. */
const RANGES_MAX = 20;

export function isLanguage(text: unknown): text is Language {
	return typeof text === "string" && Object.hasOwn(LANGUAGES, text);
}

/** The language that a reader chose in this browser, else the one that the browser asks for (RFC 9110, 12.5.4), else English. */
export function languageOf(headers: Headers): Language {
	const cookies = headers.get("cookie") ?? "";
	const chosen = cookies.split(/;\s*/).find((one) => one.startsWith(`${LANGUAGE_COOKIE}=`));
	const language = chosen?.slice(LANGUAGE_COOKIE.length + 1);
	return isLanguage(language) ? language : accepted(headers.get("accept-language") ?? "");
}

/** Of two that are wanted alike the first; a range such as `de-AT` is the language. */
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

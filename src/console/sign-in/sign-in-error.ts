import { APIError } from "better-auth/api";
import { signIn } from "../../base/de.json";
import { ENGLISH, type Language } from "../../base/language.ts";
import { englishText, fillPlaceholders, type TextValues } from "../../base/translate.ts";

/** Codes of sign-in errors, of the library and of this service; `signIn` in `de.json` translates them. */
export type SignInErrorCode = keyof typeof signIn;

const GERMAN: Readonly<Record<string, string>> = signIn;
/** Codes for those responses of the library that have none, by status. */
const CODES: Readonly<Record<number, SignInErrorCode>> = { 429: "TOO_MANY_REQUESTS" };
/** A longer response body is never a sign-in error and is not parsed. */
const BODY_CHARS_MAX = 16_384;

type Status = ConstructorParameters<typeof APIError>[0];

/** An error of a sign-in. `text` is English and may contain `{name}` for a value. */
export function signInError(
	code: SignInErrorCode,
	text: string,
	options: { status?: Status; values?: TextValues; headers?: HeadersInit } = {},
): APIError {
	const { status = "BAD_REQUEST", values } = options;
	const message = englishText(values === undefined ? { id: text } : { id: text, values });
	return new APIError(status, { code, message, ...(values === undefined ? {} : { values }) }, options.headers);
}

/** Translates the error message of a sign-in response to `language`; other responses stay unchanged. */
export async function translateSignIn(language: Language, answer: Response): Promise<Response> {
	if (language === ENGLISH || answer.status < 400 || answer.body === null) return answer;
	if (!answer.headers.get("content-type")?.startsWith("application/json")) return answer;
	const headers = new Headers(answer.headers);
	headers.delete("content-length");
	const text = await answer.text();
	return new Response(translated(text, answer.status), { status: answer.status, headers });
}

function translated(text: string, status: number): string {
	if (text.length > BODY_CHARS_MAX) return text;
	try {
		const body = JSON.parse(text) as { message?: unknown; code?: unknown; values?: TextValues };
		const code = String(body.code ?? CODES[status]);
		if (typeof body.message !== "string" || !Object.hasOwn(GERMAN, code)) return text;
		const german = fillPlaceholders(GERMAN[code] ?? "", body.values ?? {});
		// The text stays English if the response lacks a value for a placeholder.
		return /\{\w+\}/.test(german) ? text : JSON.stringify({ ...body, message: german });
	} catch {
		return text;
	}
}

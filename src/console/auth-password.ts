import { APIError } from "better-auth/api";
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from "./password-length.ts";

/** Whether a password may be chosen. Throws the library's error, which the pages show. */
export function checkNewPassword(password: string): void {
	if (password.length < PASSWORD_CHARS_MIN)
		throw refused("PASSWORD_TOO_SHORT", `A password has at least ${PASSWORD_CHARS_MIN} characters.`);
	if (password.length > PASSWORD_CHARS_MAX)
		throw refused("PASSWORD_TOO_LONG", `A password has at most ${PASSWORD_CHARS_MAX} characters.`);
}

const refused = (code: string, message: string) => new APIError("BAD_REQUEST", { code, message });

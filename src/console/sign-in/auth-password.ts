import { dictionary } from "@zxcvbn-ts/language-common";
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from "./password-length.ts";
import { signInError } from "./sign-in-error.ts";

/** Common passwords in lower case, which attackers try first. */
const common: ReadonlySet<string> = new Set(dictionary["passwords-common"]);

/** A password counts as common if it is a common word with up to this many additional characters. */
const PADDING_CHARS_MAX = 6;
/** Longest repeated unit that is detected: `abcabcabcabc` repeats three characters and is easy to guess. */
const UNIT_CHARS_MAX = 4;
/** Words of a name or mail address below this length may occur in a password. */
const OWN_WORD_CHARS_MIN = 4;

/**
 * Refuses weak passwords. `ownWords` are the service's name, the person's name and mail address, which attackers try
 * too. Throws the sign-in library's error.
 */
export function checkNewPassword(password: string, ownWords: readonly string[]): void {
	if (password.length < PASSWORD_CHARS_MIN)
		throw signInError("PASSWORD_TOO_SHORT", "A password has at least {count} characters.", {
			values: { count: PASSWORD_CHARS_MIN },
		});
	if (password.length > PASSWORD_CHARS_MAX)
		throw signInError("PASSWORD_TOO_LONG", "A password has at most {count} characters.", {
			values: { count: PASSWORD_CHARS_MAX },
		});
	if (isGuessedFirst(password, ownWords))
		throw signInError("PASSWORD_TOO_COMMON", "This password is too easy to guess. Choose another one.");
}

function isGuessedFirst(password: string, ownWords: readonly string[]): boolean {
	const text = lettersOf(password);
	const own = new Set(ownWords.flatMap(wordsOf));
	const isWord = (word: string) => common.has(word) || own.has(word);
	const bare = bareOf(text);
	return isThinWord(text, isWord) || (bare !== "" && isThinWord(bare, isWord));
}

function isThinWord(text: string, isWord: (word: string) => boolean): boolean {
	if (isWord(text) || isSequence(text)) return true;
	const unit = unitOf(text);
	if (unit !== text && (unit.length <= UNIT_CHARS_MAX || isWord(unit) || isSequence(unit))) return true;
	const [, before = "", word = "", after = ""] = /^([^\p{L}]*)(.*?)([^\p{L}]*)$/su.exec(text) ?? [];
	const isThin = (padding: string) => padding.length <= PADDING_CHARS_MAX || isWord(padding) || isSequence(padding);
	return (word === "" || isWord(word) || isWord(unitOf(word))) && isThin(before) && isThin(after);
}

function wordsOf(text: string): string[] {
	const whole = lettersOf(text);
	return [whole, bareOf(whole), ...whole.split("@"), ...whole.split(/[^\p{L}\p{N}]+/u)].filter(
		(word) => word.length >= OWN_WORD_CHARS_MIN,
	);
}

const lettersOf = (text: string) => text.normalize("NFKC").toLowerCase();
const bareOf = (text: string) => text.replace(/[^\p{L}\p{N}]+/gu, "");

function unitOf(text: string): string {
	const length = (text + text).indexOf(text, 1);
	return text.slice(0, length);
}

/** True if each character follows the one before in ascending or descending order: `abcdefghijkl`, `9876543210987`. */
function isSequence(text: string): boolean {
	const codes = [...text].map((sign) => sign.codePointAt(0) ?? 0);
	const steps = codes.slice(1).map((code, at) => code - (codes[at] ?? 0));
	const isStep = (by: number) => steps.every((step) => step === by || step === -9 * by);
	return steps.length > 0 && (isStep(1) || isStep(-1));
}

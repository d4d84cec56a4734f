import { expect, test } from "bun:test";
import { dictionary } from "@zxcvbn-ts/language-common";
import fc from "fast-check";
import { checkNewPassword } from "../../src/console/sign-in/auth-password.ts";
import { cpuMs } from "../support/wait.ts";

const OWN = ["Tollgate", "Ada Lovelace", "ada.lovelace@analytical.example"];
function codeOf(password: string): string | undefined {
	try {
		checkNewPassword(password, OWN);
	} catch (error) {
		return (error as { body: { code: string } }).body.code;
	}
	return undefined;
}

test("every password of the list of common ones is refused, also in capitals", () => {
	const long = dictionary["passwords-common"].filter(({ length }) => length >= 12);
	expect(long.length).toBeGreaterThan(200);
	for (const word of long)
		expect([word, codeOf(word), codeOf(word.toUpperCase())]).toEqual([
			word,
			"PASSWORD_TOO_COMMON",
			"PASSWORD_TOO_COMMON",
		]);
});

test("passwords of common or obvious words, sequences or repetitions are refused", () => {
	const guessed = [
		"Password2026!",
		"letmein123456",
		"iloveyou1234",
		"!!!dragon1234",
		"qwerty!!!!!!",
		"password123456789012",
		"Sunshine_2026",
		"tollgate2026",
		"Tollgate-Tollgate",
		"adalovelace".padEnd(13, "!"),
		"lovelace-1815",
		"ada.lovelace@analytical.example",
		"analytical99",
		"aaaaaaaaaaaa",
		"abcabcabcabc",
		"abcdefghijklm",
		"210987654321",
		"123456789012345",
		"passwordpassword1",
		"            ",
		"!!!!!!!!!!!!",
		"１２３４５６７８９０１２",
	];
	expect(guessed.filter((word) => codeOf(word) !== "PASSWORD_TOO_COMMON")).toEqual([]);
});

test("passphrases and generated passwords are accepted", () => {
	for (const good of [
		"correct horse battery staple",
		"the owner's own long password",
		"sunshine8347502938",
		"ünïcode påsswörter",
	])
		expect([good, codeOf(good)]).toEqual([good, undefined]);
	const made = fc.string({
		unit: fc.constantFrom(..."ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"),
		minLength: 16,
		maxLength: 128,
	});
	fc.assert(
		fc.property(made, (word) => new Set(word).size < 8 || codeOf(word) === undefined),
		{ numRuns: 300 },
	);
});

test("too short and too long passwords are refused quickly", () => {
	expect([codeOf("short"), codeOf("x".repeat(129))]).toEqual(["PASSWORD_TOO_SHORT", "PASSWORD_TOO_LONG"]);
	const startedMs = cpuMs();
	for (const slow of ["a1".repeat(64), `${"1".repeat(127)}a`, "!a".repeat(64), "\u0130".repeat(128)])
		for (let nth = 0; nth < 20; nth++) codeOf(slow);
	expect(cpuMs() - startedMs).toBeLessThan(2_000);
});

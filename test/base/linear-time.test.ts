import { expect, test } from "bun:test";
import { measureChat } from "../../src/admission/prompt-bound.ts";
import { isMailAddress } from "../../src/base/mail-address.ts";
import { assertShortTexts } from "../../src/console/sign-in/auth-request.ts";
import { isPersonName } from "../../src/console/sign-in/person-name.ts";
import { parseDecimal } from "../../src/money/decimal.ts";
import { modelOver } from "../support/upstream-catalog.ts";
import { cpuMs } from "../support/wait.ts";

/** Runs of combining marks, zeros or separators, on which normalization and some patterns take quadratic time. */
const marks = (chars: number) => `a${"\u0315\u0300".repeat(chars / 2)}`;
const zeros = (chars: number) => `0.${"0".repeat(chars)}1`;
const model = modelOver([], { contextLength: 100_000_000 });

/** Quadratic time is 1 s for 30,000 characters and 10 minutes for 500,000; linear time is below 20 ms. */
const CPU_MS_MAX = 400;

test.each([
	["the bound of a message", (chars: number) => measureChat([{ content: marks(chars) }], [], model)],
	["the bound of tools", (chars: number) => measureChat([], [{ description: marks(chars) }], model)],
	["a person's name", (chars: number) => isPersonName(marks(chars))],
	["a mail address", (chars: number) => isMailAddress(`${marks(chars)}@example.com`)],
	["a password", (chars: number) => expect(() => assertShortTexts({ password: marks(chars) })).toThrow()],
	["an amount", (chars: number) => parseDecimal(zeros(chars), 9)],
])("%s of many characters is processed in linear time", (_name, process) => {
	for (const chars of [30_000, 500_000]) {
		const startedMs = cpuMs();
		process(chars);
		expect(cpuMs() - startedMs).toBeLessThan(CPU_MS_MAX);
	}
});

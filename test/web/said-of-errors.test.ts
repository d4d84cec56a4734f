import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createFairPool } from "../../src/base/fair-pool.ts";
import { Fault, type FaultCode } from "../../src/base/fault.ts";
import { ERRORS, errorResponse } from "../../src/gateway/error-body.ts";
import { openapiDocument } from "../../src/gateway/openapi/openapi.ts";

/** The docs must list exactly the errors that the service returns to customers. */

const SRC = join(import.meta.dir, "../../src");
const page = readFileSync(join(SRC, "web/docs/en/errors.md"), "utf8");
const paper = readFileSync(join(SRC, "gateway/README.md"), "utf8");
/** Error codes of the console and the management interface, which the docs omit. */
const NOT_OF_THE_INTERFACE = [
	"session_required",
	"forbidden",
	"second_factor_required",
	"reauthentication_required",
	"precondition_failed",
	"unprocessable_request",
];

test("the errors page lists every code with its status", () => {
	const said = [...page.matchAll(/^\| (\d[\d, ]*) \| ([^|]+) \|/gm)].flatMap(([, statuses = "", codes = ""]) =>
		[...codes.matchAll(/`(\w+)`/g)].map(([, code = ""]) => [code, statuses.split(", ").map(Number)] as const),
	);
	const codes = Object.keys(ERRORS).filter((code) => !NOT_OF_THE_INTERFACE.includes(code));
	expect(said.map(([code]) => code).sort()).toEqual(codes.sort());
	for (const [code, statuses] of said)
		expect([code, statuses]).toEqual([code, expect.arrayContaining([ERRORS[code as FaultCode].status])]);
});

test("the docs page about 429 names the account's limits", () => {
	const places = createFairPool({ size: () => 10, share: () => 1 / 10 });
	places.take("acc_1");
	expect(() => places.take("acc_1")).toThrow(expect.objectContaining({ code: "rate_limit_exceeded" }));
	// biome-ignore lint/suspicious/noExplicitAny: the document is walked by hand.
	const { description } = (openapiDocument() as any).paths["/v1/files"].post.responses["429"];
	const [, ofPaper = ""] = /^\| 429 \|(.*)$/m.exec(paper) ?? [];
	const [ofPage = ""] = /A limit of your key[^|]*/.exec(page) ?? [];
	for (const text of [description, ofPaper, ofPage]) {
		expect(text).toContain("account");
		expect(text).toContain("wrong keys");
	}
});

test("an error's `x-should-retry` is false or absent, as the errors page says", () => {
	const told = Object.keys(ERRORS).flatMap((code) =>
		[undefined, 1].map((retryAfterS) => {
			const fault = new Fault(code as FaultCode, "", retryAfterS === undefined ? {} : { retryAfterS });
			return errorResponse(fault, "req_1").headers.get("x-should-retry");
		}),
	);
	expect(new Set(told)).toEqual(new Set(["false", null]));
	expect(page).toContain("The header `x-should-retry: false` marks an error that a retry cannot fix");
});

import { expect, test } from "bun:test";
import { createAccountPlaces } from "../../src/gateway/account-places.ts";

test("limits the places of an account and of all accounts", () => {
	const { enter } = createAccountPlaces({ perAccountMax: 2, max: 3 });
	const full = (code: string) => expect.objectContaining({ code, retryAfterS: expect.any(Number) });
	const leave = enter("a");
	enter("a");
	expect(() => enter("a")).toThrow(full("rate_limit_exceeded"));
	enter("b");
	expect(() => enter("b")).toThrow(full("overloaded"));
	leave();
	leave();
	enter("b");
	expect(() => enter("c")).toThrow(full("overloaded"));
});

import { expect } from "bun:test";
import type { TestService } from "./service.ts";

/** Returns a minimal chat request. The echoing upstream counts one token per word, and three more per message. */
export function ask(text = "one two three", more: Record<string, unknown> = {}): Record<string, unknown> {
	return { model: "test-model", messages: [{ role: "user", content: text }], ...more };
}

/** Posts JSON to an absolute address with an API key. */
export const postJson = (url: string, secret: string, body: unknown, init: RequestInit = {}): Promise<Response> =>
	fetch(url, {
		method: "POST",
		...init,
		headers: {
			...{ "content-type": "application/json", authorization: `Bearer ${secret}` },
			...(init.headers as Record<string, string>),
		},
		body: JSON.stringify(body),
	});

/** Charge of a `chatModel` in nano-dollars: USD 1 per million prompt tokens, USD 2 per million output tokens. */
export function priceOf(prompt: number, completion: number): number {
	return prompt * 1_000 + completion * 2_000;
}

/** Reads an error response, whose `error` must have exactly its four fields and the named extra ones. */
export async function errorOf(response: Response, extra: readonly string[] = []) {
	const text = await response.text();
	expect(response.headers.get("content-type")).toBe("application/json");
	expect(response.headers.get("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/);
	expect(response.headers.get("cache-control")).toBe("no-store");
	const body = JSON.parse(text) as { error: Record<string, unknown> };
	expect(Object.keys(body)).toEqual(["error"]);
	expect(Object.keys(body.error).sort()).toEqual(["code", "message", "param", "type", ...extra].sort());
	expect(typeof body.error.message).toBe("string");
	expect((body.error.message as string).length).toBeGreaterThan(10);
	expect(typeof body.error.type).toBe("string");
	expect(typeof body.error.code).toBe("string");
	expect(body.error.param === null || typeof body.error.param === "string").toBe(true);
	return { status: response.status, headers: response.headers, error: body.error };
}

/** Expects no charge and no held amount: the balance must be the amount paid in. */
export async function expectUncharged(service: TestService, accountId: string): Promise<void> {
	await service.settled();
	const balance = await service.balance(accountId);
	expect({ spent: Number(balance.spent), held: Number(balance.held) }).toEqual({ spent: 0, held: 0 });
	for (const row of await service.usage(accountId)) expect(Number(row.charged_nano_usd)).toBe(0);
}

/**
 * Returns the only usage row of an account after everything is settled. Expects its charge as the spent amount, nothing
 * held, and consistent books.
 */
export async function onlyUsage(
	service: TestService,
	accountId: string,
): Promise<Record<string, string | number | null> & { charged: number; reserved: number }> {
	await service.settled();
	const rows = await service.usage(accountId);
	expect(rows).toHaveLength(1);
	const [row] = rows;
	if (row === undefined) throw new Error("no row");
	const balance = await service.balance(accountId);
	expect(Number(balance.spent)).toBe(Number(row.charged_nano_usd));
	expect(Number(balance.held)).toBe(0);
	expect(Number(balance.available)).toBe(Number(balance.balance));
	expect((await service.reconciled()).filter(({ ok }) => !ok)).toEqual([]);
	return { ...row, charged: Number(row.charged_nano_usd), reserved: Number(row.reserved_nano_usd) };
}

import { confirmTopUp, createTopUp } from "../../src/billing/top-ups.ts";
import type { Statements } from "../../src/db/statements.ts";
import { createAccount } from "../../src/keys/account-admin.ts";
import { NANO_PER_USD, type NanoUsd, nanoUsd } from "../../src/money/nano-usd.ts";

const USUAL = nanoUsd(100 * NANO_PER_USD);

/** Pays credit into an account by a confirmed top-up; returns the top-up's id. */
export async function payIn(
	statements: Statements,
	accountId: string,
	amountNanoUsd: NanoUsd = USUAL,
	method: "transfer" | "card" = "transfer",
): Promise<string> {
	const made = { accountId, amountNanoUsd, method, reference: crypto.randomUUID() };
	const { id } = await createTopUp(statements, made);
	await confirmTopUp(statements, id, "test");
	return id;
}

/** Creates an account with confirmed credit; returns its id. */
export async function paidAccount(statements: Statements, amountNanoUsd?: NanoUsd): Promise<string> {
	const { id } = await createAccount(statements, { email: `${crypto.randomUUID()}@example.com`, vouched: true });
	await payIn(statements, id, amountNanoUsd);
	return id;
}

import { confirmTopUp, createTopUp, listTopUps, TOP_UP_NANO_USD_MIN } from "../billing/top-ups.ts";
import type { Statements } from "../db/statements.ts";
import { createAccount, findAccount } from "../keys/account-admin.ts";
import { createKey, type KeyMakerDeps, type KeyRecord, listKeys } from "../keys/key-admin.ts";
import { shownParts } from "../keys/secret.ts";
import { DEMO_DATA } from "./demo-history.ts";

export const DEMO_EMAIL = "demo@localhost";
const ACTOR = "demo";
const PAGE_ROWS = 100;

/**
 * Creates the missing parts of the first run's account: a top-up of USD 100 in play money and a key. `secret` is that
 * of a key created now, which can be shown only once; `key` is that key or the newest working one. `newPepper`: key
 * digests have a new pepper, so no earlier key works.
 */
export async function ensureDemoAccount(
	deps: KeyMakerDeps,
	options: { nowMs: number; newPepper: boolean },
): Promise<{ id: string; secret: string | undefined; key: { prefix: string; lastFour: string } }> {
	const { statements, serviceName } = deps;
	const found = await findAccount(statements, DEMO_EMAIL);
	const { id } = found ?? (await createAccount(statements, { email: DEMO_EMAIL, name: "Demo", vouched: true }));
	await ensureTopUp(statements, id);
	const keys = await listKeys(statements, id, { limit: PAGE_ROWS });
	const working = options.newPepper ? undefined : keys.items.find((key) => isWorking(key, serviceName, options.nowMs));
	if (working !== undefined) return { id, secret: undefined, key: working };
	const made = await createKey(deps, id, { name: "demo" });
	return { id, secret: made.secret, key: shownParts(made.secret, serviceName) };
}

async function ensureTopUp(statements: Statements, accountId: string): Promise<void> {
	const { items } = await listTopUps(statements, { accountId }, { limit: PAGE_ROWS });
	if (items.some(({ state }) => state === "confirmed")) return;
	const waiting = items.find(({ method, state }) => method === "demo" && state === "pending");
	const topUp =
		waiting ?? (await createTopUp(statements, { accountId, ...DEMO_TOP_UP, reference: `demo ${accountId}` }));
	await confirmTopUp(statements, topUp.id, ACTOR);
}

const DEMO_TOP_UP = { amountNanoUsd: TOP_UP_NANO_USD_MIN, method: "demo" } as const;

/** Whether the key can be used. Its prefix contains SERVICE_NAME; keys from before a change of it are refused. */
function isWorking(key: KeyRecord, serviceName: string, nowMs: number): boolean {
	if (key.name.endsWith(DEMO_DATA)) return false;
	const lives = key.state === "active" && key.replacedBy === null && (key.expiresAtMs ?? Infinity) > nowMs;
	return lives && key.prefix.startsWith(`sk_${serviceName}_`);
}

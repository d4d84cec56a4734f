import { appendFileSync } from "node:fs";

/** Seconds of one attack in the long form (`run.ts`); undefined in an ordinary test run. */
export const ATTACK_S = process.env.ATTACK_S === undefined ? undefined : Number(process.env.ATTACK_S);

/** Timeout of a test with up to three tries, each with one measurement without and one with the attack. */
export const ATTACK_TEST_MS = 120_000 + 6_000 * (ATTACK_S ?? 0);

export interface AttackRow {
	readonly resource: string;
	readonly attack: string;
	readonly attackers: number;
	readonly refused: number;
	readonly aloneMs: number;
	readonly attackedMs: number;
	readonly aloneLoopMs: number;
	readonly attackedLoopMs: number;
	readonly isFair: boolean;
}

/** Adds a row for the table of `results.md`. */
export function addRow(row: AttackRow): void {
	const { ATTACK_ROWS: path } = process.env;
	if (path !== undefined) appendFileSync(path, `${JSON.stringify(row)}\n`);
}

import { appendFileSync } from "node:fs";

/** Seconds of one attack; `run.ts` sets them. */
export const ATTACK_S = Number(process.env.ATTACK_S ?? 2);
/** Seconds of the measurement without the attack. */
export const ALONE_S = Math.min(ATTACK_S, 8);

/** Timeout of a test with up to three tries, each with one measurement without and one with the attack. */
export const ATTACK_TEST_MS = 120_000 + 3_000 * (ALONE_S + ATTACK_S);

export interface AttackRow {
	readonly resource: string;
	readonly attack: string;
	readonly attackers: number;
	readonly refused: number;
	readonly aloneMs: number;
	readonly attackedMs: number;
	readonly aloneLoopMs: number;
	readonly attackedLoopMs: number;
	/** Largest memory of the attacked process. */
	readonly memoryMb: number;
	readonly isFair: boolean;
}

/** Adds a row for the table of `results.md`. */
export function addRow(row: AttackRow): void {
	const { ATTACK_ROWS: path } = process.env;
	if (path !== undefined) appendFileSync(path, `${JSON.stringify(row)}\n`);
}

import type { Page } from "playwright-core";
import { waitFor } from "../support/wait.ts";

export interface ScreenEntry {
	readonly what: string;
	readonly note: string;
	readonly amountNanoUsd: bigint;
	readonly balanceNanoUsd: bigint;
}

const WAIT_MS = 60_000;
const NANO_DIGITS = 9;

/** Returns the ledger entries that the page shows, newest first. */
async function ledgerOnScreen(page: Page): Promise<ScreenEntry[]> {
	const table = page.getByRole("table", { name: "Ledger" });
	const rows = await table.locator("tbody tr:not(.skeleton-row)").evaluateAll((found) =>
		found.map((row) => {
			const cell = (label: string) => row.querySelector(`[data-label="${label}"]`);
			return {
				what: cell("Description")?.textContent ?? "",
				note: cell("Note")?.textContent ?? "",
				amount: cell("Amount")?.querySelector("[title]")?.getAttribute("title") ?? "",
				balance: cell("Balance")?.querySelector("[title]")?.getAttribute("title") ?? "",
			};
		}),
	);
	return rows.map(({ what, note, amount, balance }) => ({
		what,
		note,
		amountNanoUsd: nanoOf(amount),
		balanceNanoUsd: nanoOf(balance),
	}));
}

/** Waits for the newest entry, then returns all entries. Throws if they do not add up to the balance above them. */
export async function readConsistentLedger(
	page: Page,
	newest: { what: string; lines: number },
): Promise<ScreenEntry[]> {
	let entries: ScreenEntry[] = [];
	await waitFor(
		async () => {
			entries = await ledgerOnScreen(page);
			return entries.length === newest.lines && entries[0]?.what === newest.what;
		},
		`${newest.lines} lines of the ledger, the newest a ${newest.what}`,
		WAIT_MS,
	);
	let balance = 0n;
	for (const entry of entries.toReversed()) {
		balance += entry.amountNanoUsd;
		if (entry.balanceNanoUsd !== balance) throw new Error(`${entry.what}: ${entry.balanceNanoUsd}, not ${balance}`);
	}
	const stat = page.locator(".stat").filter({ has: page.getByText("Balance", { exact: true }) });
	await waitFor(
		async () => nanoOf((await stat.locator("[title]").getAttribute("title")) ?? "") === balance,
		"the balance to be the sum of the ledger",
		WAIT_MS,
	);
	return entries;
}

/** Parses an amount such as `−$1,204.50`. */
function nanoOf(text: string): bigint {
	const [, minus, whole = "", fraction = ""] = /^(−)?\$([\d,]+)\.(\d+)$/.exec(text) ?? [];
	if (whole === "") throw new Error(`not an amount: ${text}`);
	const size = BigInt(whole.replaceAll(",", "") + fraction.padEnd(NANO_DIGITS, "0"));
	return minus ? -size : size;
}

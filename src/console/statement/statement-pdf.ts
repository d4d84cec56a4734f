import { type Party, partyLines } from "./billing-details.ts";
import { createPaper, type Paper } from "./paper.ts";
import { ENTRIES_MAX, type Statement } from "./statement.ts";
import { exactUsd } from "./statement-csv.ts";
import { KIND_NAMES, type StatementLine } from "./statement-lines.ts";

export interface StatementPaper {
	readonly statement: Statement;
	readonly lines: readonly StatementLine[];
	readonly serviceName: string;
	readonly seller: Party;
	readonly buyer: Party;
	readonly account: { readonly id: string; readonly name: string; readonly email: string };
	/** The operator's font, for what ours lack. */
	readonly font: { readonly path: string; readonly bytes: Buffer } | null;
	/** Of the log: days and models are links into it. */
	readonly logUrl: (query: { from: number; to: number; model?: string }) => string;
}

const DAY_MS = 24 * 3_600_000;
/** On paper; all of them are in the CSV. */
const ROWS_MAX = 300;
const HEAD = 14;
const LINE = 13;
const MONTHS = new Intl.DateTimeFormat("en-US", { year: "numeric", month: "long", timeZone: "UTC" });
const STATES: Readonly<Record<Statement["state"], string>> = {
	closed: "Closed: nothing of it changes any more",
	over: "Preliminary: the month is over and not closed yet",
	running: "Preliminary: the month is not over",
};

/** The month on paper: who to whom, the sums, each movement, usage by model and by day. */
export async function statementPdf(given: StatementPaper): Promise<Uint8Array<ArrayBuffer>> {
	const { statement, serviceName, account } = given;
	const title = `Statement ${MONTHS.format(statement.fromMs)}`;
	const paper = createPaper(given.font, { title: `${title}, ${account.id}`, author: serviceName });
	heading(paper, given, title);
	summary(paper, statement);
	movements(paper, given.lines);
	usageTables(paper, given);
	return paper.finish(
		(page, pages, somethingMissing) =>
			`${serviceName} · ${account.id} · ${statement.month} · page ${page} of ${pages}${
				somethingMissing ? " · \uFFFD is a sign that no font here has; the CSV of this month has it" : ""
			}`,
	);
}

function heading(
	paper: Paper,
	{ statement, serviceName, seller, buyer, account }: StatementPaper,
	title: string,
): void {
	paper.text(serviceName, { size: 11, bold: true, width: 240 });
	paper.text(title, { size: 16, bold: true, right: true });
	paper.y += 34;
	const from = partyLines(seller);
	const to = partyLines({ ...buyer, company: buyer.company === "" ? account.name : buyer.company });
	const half = paper.width / 2;
	paper.text("From", { size: 8, dim: true });
	paper.text("To", { x: half, size: 8, dim: true });
	paper.y += LINE;
	const left = from.length === 0 ? [serviceName] : from;
	const right = [...to, account.email];
	for (let row = 0; row < Math.max(left.length, right.length); row++) {
		paper.text(left[row] ?? "", { width: half - 12, bold: row === 0 });
		paper.text(right[row] ?? "", { x: half, width: half, bold: row === 0 });
		paper.y += LINE;
	}
	paper.y += 10;
	const last = new Date(statement.toMs - 1).toISOString().slice(0, 10);
	for (const [name, value] of [
		["Account", `${account.name} (${account.id})`],
		["Period", `${statement.month}-01 to ${last}, days in UTC`],
		["State", STATES[statement.state]],
	] as const) {
		paper.text(name, { dim: true, width: 90 });
		paper.text(value, { x: 90 });
		paper.y += LINE;
	}
	paper.y += 12;
}

function summary(paper: Paper, statement: Statement): void {
	const { entrySums } = statement;
	const kinds = (["top_up", "refund", "adjustment", "dispute", "credit_note"] as const).filter(
		(kind) => kind === "top_up" || (entrySums[kind] ?? 0n) !== 0n,
	);
	const plural = {
		top_up: "Top-ups",
		refund: "Refunds",
		adjustment: "Adjustments",
		dispute: "Disputes",
		credit_note: "Credit notes",
	};
	const rows: (readonly [string, bigint])[] = [
		["Opening balance", statement.openingNanoUsd],
		...kinds.map((kind) => [plural[kind], entrySums[kind] ?? 0n] as const),
		["Usage", -statement.usageNanoUsd],
	];
	if (statement.lateNanoUsd !== 0n) rows.push([KIND_NAMES.late_usage, -statement.lateNanoUsd]);
	const all = [...rows, ["Closing balance", statement.closingNanoUsd] as const];
	const shown = aligned(all.map(([, amount]) => amount));
	head(paper, "Summary", "USD");
	for (const [row, [name]] of all.entries()) {
		const bold = row === 0 || row === all.length - 1;
		if (row === all.length - 1) {
			paper.rule();
			paper.y += 4;
		}
		paper.text(name, { bold });
		paper.text(shown[row] ?? "", { right: true, bold });
		paper.y += LINE;
	}
	paper.y += 14;
}

function movements(paper: Paper, lines: readonly StatementLine[]): void {
	const all = lines.filter(({ kind }) => kind !== "usage");
	if (all.length === 0) return;
	const told = all.slice(0, ROWS_MAX);
	table(
		paper,
		"Movements",
		told.map((line) => ({
			cells: [line.day, KIND_NAMES[line.kind], line.description],
			amount: line.amountNanoUsd,
			url: line.url,
		})),
		[70, 120],
	);
	rest(paper, all.length - told.length);
}

function usageTables(paper: Paper, { statement, logUrl }: StatementPaper): void {
	const { fromMs, toMs } = statement;
	const byModel = summed(statement, ({ model }) => model).sort((a, b) => (a.amount > b.amount ? -1 : 1));
	if (byModel.length === 0) return;
	const row = ({ name, requests, tokens, amount }: Summed, query: Parameters<typeof logUrl>[0]) => ({
		cells: [name, `${grouped(requests)} ${requests === 1n ? "request" : "requests"}`, `${grouped(tokens)} tokens`],
		amount: -amount,
		url: logUrl(query),
	});
	const models = byModel.slice(0, ROWS_MAX).map((sums) => row(sums, { from: fromMs, to: toMs, model: sums.name }));
	table(paper, "Usage by model", models, [200, 90]);
	rest(paper, byModel.length - models.length);
	const byDay = summed(statement, ({ day }) => day);
	const days = byDay.map((sums) => {
		const from = Date.parse(`${sums.name}T00:00:00Z`);
		return row(sums, { from, to: from + DAY_MS });
	});
	table(paper, "Usage by day", days, [200, 90]);
}

interface Summed {
	readonly name: string;
	requests: bigint;
	tokens: bigint;
	amount: bigint;
}

function summed({ usage }: Statement, nameOf: (row: Statement["usage"][number]) => string): Summed[] {
	const sums = new Map<string, Summed>();
	for (const used of usage) {
		const name = nameOf(used);
		const sum = sums.get(name) ?? { name, requests: 0n, tokens: 0n, amount: 0n };
		sum.requests += used.requests;
		sum.tokens += used.promptTokens + used.completionTokens;
		sum.amount += used.chargedNanoUsd;
		sums.set(name, sum);
	}
	return [...sums.values()];
}

interface TableRow {
	readonly cells: readonly string[];
	readonly amount: bigint;
	readonly url: string;
}

/** `widths` of all cells but the last, which has what is left of them and the amount. */
function table(paper: Paper, title: string, rows: readonly TableRow[], widths: readonly number[]): void {
	paper.room(HEAD + 4 * LINE);
	head(paper, title, "USD");
	const shown = aligned(rows.map(({ amount }) => amount));
	for (const [index, { cells, url }] of rows.entries()) {
		if (paper.room(LINE)) head(paper, `${title}, continued`, "USD");
		let x = 0;
		for (const [column, cell] of cells.entries()) {
			const width = widths[column] ?? paper.width - x - 120;
			paper.text(cell, { x, width: width - 8, dim: column > 0, ...(column === 0 ? { url } : {}) });
			x += width;
		}
		paper.text(shown[index] ?? "", { right: true });
		paper.y += LINE;
	}
	paper.y += 14;
}

function head(paper: Paper, title: string, unit: string): void {
	paper.text(title, { size: 10, bold: true });
	paper.text(unit, { size: 8, dim: true, right: true });
	paper.y += HEAD;
	paper.rule();
	paper.y += 5;
}

function rest(paper: Paper, rows: number): void {
	if (rows <= 0) return;
	paper.y -= 12;
	paper.text(`${rows >= ENTRIES_MAX ? "Many" : rows} more are in the CSV.`, { dim: true });
	paper.y += LINE + 12;
}

/** As many decimals as the finest of them has, so that the points stand below each other. */
function aligned(amounts: readonly bigint[]): string[] {
	const shown = amounts.map(exactUsd);
	const decimals = Math.max(2, ...shown.map((text) => text.split(".")[1]?.length ?? 0));
	return shown.map((text) => {
		const [whole = "", fraction = ""] = text.replace("-", "").split(".");
		return `${text.startsWith("-") ? "−" : ""}${grouped(whole)}.${fraction.padEnd(decimals, "0")}`;
	});
}

const grouped = (whole: bigint | string): string => String(whole).replace(/\B(?=(\d{3})+$)/g, ",");

import type { Language } from "../../base/language.ts";
import { createTimeSlice, type TimeSlice } from "../../base/time-slice.ts";
import { type Party, partyLines } from "./billing-details.ts";
import { createPaper, type Paper } from "./paper.ts";
import { PAPER_TEXTS, type PaperTexts } from "./paper-texts.ts";
import { ENTRIES_MAX, type Statement } from "./statement.ts";
import { exactUsd } from "./statement-csv.ts";
import type { StatementLine } from "./statement-lines.ts";

export interface StatementPaper {
	readonly statement: Statement;
	readonly lines: readonly StatementLine[];
	readonly language: Language;
	readonly serviceName: string;
	readonly seller: Party;
	readonly buyer: Party;
	readonly account: { readonly id: string; readonly name: string; readonly email: string };
	/** The operator's font, for what ours lack. */
	readonly font: { readonly path: string; readonly bytes: Buffer } | null;
	/** Of the log: days and models are links into it. */
	readonly logUrl: (query: { from: number; to: number; model?: string; project?: string }) => string;
}

const DAY_MS = 24 * 3_600_000;
/** On paper; all of them are in the CSV. */
const ROWS_MAX = 300;
const HEAD = 14;
const LINE = 13;

/** The month on paper: who to whom, the sums, each movement, usage by model and by day. */
export async function statementPdf(given: StatementPaper): Promise<Uint8Array<ArrayBuffer>> {
	const { statement, serviceName, account, language } = given;
	const texts = PAPER_TEXTS[language];
	const month = new Intl.DateTimeFormat(language, { year: "numeric", month: "long", timeZone: "UTC" });
	const title = `${texts.statement} ${month.format(statement.fromMs)}`;
	const paper = createPaper(given.font, { title: `${title}, ${account.id}`, author: serviceName, language });
	// A row takes some milliseconds where it is long and cut.
	const timeSlice = createTimeSlice();
	heading(paper, given, title);
	summary(paper, texts, statement);
	await movements(paper, texts, given.lines, timeSlice);
	await usageTables(paper, given, timeSlice);
	return paper.finish(
		(page, pages, somethingMissing) =>
			`${serviceName} · ${account.id} · ${statement.month} · ${texts.page(page, pages)}${
				somethingMissing ? ` · ${texts.missing}` : ""
			}`,
	);
}

function heading(
	paper: Paper,
	{ statement, language, serviceName, seller, buyer, account }: StatementPaper,
	title: string,
): void {
	const texts = PAPER_TEXTS[language];
	paper.text(serviceName, { size: 11, bold: true, width: 240 });
	paper.text(title, { size: 16, bold: true, right: true });
	paper.y += 34;
	const from = partyLines(seller, language);
	const to = partyLines({ ...buyer, company: buyer.company === "" ? account.name : buyer.company }, language);
	const half = paper.width / 2;
	paper.text(texts.from, { size: 8, dim: true });
	paper.text(texts.to, { x: half, size: 8, dim: true });
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
		[texts.account, `${account.name} (${account.id})`],
		[texts.period, texts.days(`${statement.month}-01`, last)],
		[texts.state, texts.states[statement.state]],
	] as const) {
		paper.text(name, { dim: true, width: 90 });
		paper.text(value, { x: 90 });
		paper.y += LINE;
	}
	paper.y += 12;
}

function summary(paper: Paper, texts: PaperTexts, statement: Statement): void {
	const { entrySums } = statement;
	const kinds = (["top_up", "refund", "adjustment", "dispute", "credit_note"] as const).filter(
		(kind) => kind === "top_up" || (entrySums[kind] ?? 0n) !== 0n,
	);
	const rows: (readonly [string, bigint])[] = [
		[texts.opening, statement.openingNanoUsd],
		...kinds.map((kind) => [texts.sums[kind], entrySums[kind] ?? 0n] as const),
		[texts.usage, -statement.usageNanoUsd],
	];
	if (statement.lateNanoUsd !== 0n) rows.push([texts.kinds.late_usage, -statement.lateNanoUsd]);
	const all = [...rows, [texts.closing, statement.closingNanoUsd] as const];
	const shown = aligned(
		texts,
		all.map(([, amount]) => amount),
	);
	head(paper, texts.summary, "USD");
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

async function movements(
	paper: Paper,
	texts: PaperTexts,
	lines: readonly StatementLine[],
	timeSlice: TimeSlice,
): Promise<void> {
	const all = lines.filter(({ kind }) => kind !== "usage");
	if (all.length === 0) return;
	const told = all.slice(0, ROWS_MAX);
	await table(
		{ paper, texts, timeSlice },
		texts.movements,
		told.map((line) => ({
			cells: [line.day, texts.kinds[line.kind], line.description],
			amount: line.amountNanoUsd,
			url: line.url,
		})),
		[70, 120],
	);
	rest(paper, texts, all.length - told.length);
}

async function usageTables(
	paper: Paper,
	{ statement, language, logUrl }: StatementPaper,
	timeSlice: TimeSlice,
): Promise<void> {
	const texts = PAPER_TEXTS[language];
	const on = { paper, texts, timeSlice };
	const { fromMs, toMs } = statement;
	const byModel = summed(statement, ({ model }) => model).sort((a, b) => (a.amount > b.amount ? -1 : 1));
	if (byModel.length === 0) return;
	const row = ({ name, requests, tokens, amount }: Summed, query: Parameters<typeof logUrl>[0]) => ({
		cells: [name, texts.requests(requests, grouped(texts, requests)), texts.tokens(grouped(texts, tokens))],
		amount: -amount,
		url: logUrl(query),
	});
	const models = byModel.slice(0, ROWS_MAX).map((sums) => row(sums, { from: fromMs, to: toMs, model: sums.name }));
	await table(on, texts.byModel, models, [200, 90]);
	rest(paper, texts, byModel.length - models.length);
	if (statement.usage.some(({ projectId }) => projectId !== "")) {
		const names = new Map(statement.usage.map(({ projectId, projectName }) => [projectId, projectName]));
		const byProject = summed(statement, ({ projectId }) => projectId).sort((a, b) => (a.amount > b.amount ? -1 : 1));
		const projects = byProject.slice(0, ROWS_MAX).map((sums) => {
			const name = sums.name === "" ? texts.noProject : (names.get(sums.name) ?? sums.name);
			return row({ ...sums, name }, { from: fromMs, to: toMs, project: sums.name || "none" });
		});
		await table(on, texts.byProject, projects, [200, 90]);
		rest(paper, texts, byProject.length - projects.length);
	}
	const byDay = summed(statement, ({ day }) => day);
	const days = byDay.map((sums) => {
		const from = Date.parse(`${sums.name}T00:00:00Z`);
		return row(sums, { from, to: from + DAY_MS });
	});
	await table(on, texts.byDay, days, [200, 90]);
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
async function table(
	{ paper, texts, timeSlice }: { paper: Paper; texts: PaperTexts; timeSlice: TimeSlice },
	title: string,
	rows: readonly TableRow[],
	widths: readonly number[],
): Promise<void> {
	paper.room(HEAD + 4 * LINE);
	head(paper, title, "USD");
	const shown = aligned(
		texts,
		rows.map(({ amount }) => amount),
	);
	for (const [index, { cells, url }] of rows.entries()) {
		if (paper.room(LINE)) head(paper, texts.continued(title), "USD");
		let x = 0;
		for (const [column, cell] of cells.entries()) {
			const width = widths[column] ?? paper.width - x - 120;
			paper.text(cell, { x, width: width - 8, dim: column > 0, ...(column === 0 ? { url } : {}) });
			x += width;
		}
		paper.text(shown[index] ?? "", { right: true });
		paper.y += LINE;
		if (timeSlice.isOver()) await timeSlice.next();
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

function rest(paper: Paper, texts: PaperTexts, rows: number): void {
	if (rows <= 0) return;
	paper.y -= 12;
	paper.text(texts.more(rows >= ENTRIES_MAX ? null : rows), { dim: true });
	paper.y += LINE + 12;
}

/** As many decimals as the finest of them has, so that the points stand below each other. */
function aligned(texts: PaperTexts, amounts: readonly bigint[]): string[] {
	const shown = amounts.map(exactUsd);
	const decimals = Math.max(2, ...shown.map((text) => text.split(".")[1]?.length ?? 0));
	return shown.map((text) => {
		const [whole = "", fraction = ""] = text.replace("-", "").split(".");
		return `${text.startsWith("-") ? "−" : ""}${grouped(texts, whole)}${texts.point}${fraction.padEnd(decimals, "0")}`;
	});
}

const grouped = ({ thousands }: PaperTexts, whole: bigint | string): string =>
	String(whole).replace(/\B(?=(\d{3})+$)/g, thousands);

import type { Language } from "../../base/language.ts";
import { type TextId, translateId } from "../../base/translate.ts";
import { ENGLISH_USD, GERMAN_USD } from "../../money/shown-usd.ts";
import { type InvoiceParty, partyLines } from "./billing-details.ts";
import { ENTRIES_MAX, type MonthState, type Statement, type StatementEntry } from "./statement.ts";
import { exactUsd, LINE_KINDS, type StatementLine } from "./statement-lines.ts";

export type StatementDocument = ReturnType<typeof statementDocument>;
export type DocumentTable = ReturnType<typeof tableOf>;

export interface DocumentRow {
	readonly cells: readonly string[];
	readonly amount: string;
	readonly url?: string;
	readonly strong?: boolean;
}

export interface DocumentDetails {
	readonly statement: Statement;
	readonly lines: readonly StatementLine[];
	readonly language: Language;
	readonly serviceName: string;
	readonly seller: InvoiceParty;
	readonly buyer: InvoiceParty;
	readonly account: { readonly id: string; readonly name: string; readonly email: string };
	readonly logUrl: (query: Readonly<Record<string, string>>) => string;
}

const DAY_MS = 24 * 3_600_000;
const ROWS_MAX = 300;
const SUMS = {
	top_up: "Top-ups",
	refund: "Refunds",
	adjustment: "Adjustments",
	promotion: "Promotional credit",
	dispute: "Disputes",
	credit_note: "Credit notes",
} as const satisfies Readonly<Record<StatementEntry["kind"], TextId>>;
const STATES = {
	closed: "Closed: figures are final",
	over: "Preliminary: the month is over but not closed yet",
	running: "Preliminary: the month is not over",
} as const satisfies Readonly<Record<MonthState, TextId>>;

export function statementDocument(given: DocumentDetails) {
	const { statement, serviceName, account, language, seller, buyer } = given;
	const month = new Intl.DateTimeFormat(language, { year: "numeric", month: "long", timeZone: "UTC" });
	const from = partyLines(seller, language);
	const to = partyLines({ ...buyer, company: buyer.company === "" ? account.name : buyer.company }, language);
	const first = `${statement.month}-01`;
	const last = new Date(statement.toMs - 1).toISOString().slice(0, 10);
	return {
		language,
		title: `${translateId(language, "Statement")} ${month.format(statement.fromMs)}`,
		serviceName,
		accountId: account.id,
		month: statement.month,
		from: { label: translateId(language, "From"), lines: from.length === 0 ? [serviceName] : from },
		to: { label: translateId(language, "To"), lines: [...to, account.email] },
		facts: [
			[translateId(language, "Account"), `${account.name} (${account.id})`],
			[translateId(language, "Period"), translateId(language, "{first} to {last}, days in UTC", { first, last })],
			[translateId(language, "State"), translateId(language, STATES[statement.state])],
		] as const,
		tables: [summary(given), movements(given), ...usageTables(given)].filter(({ rows }) => rows.length > 0),
	};
}

function summary({ statement, language }: DocumentDetails): DocumentTable {
	const { entrySums } = statement;
	const kinds = (Object.keys(SUMS) as (keyof typeof SUMS)[]).filter(
		(kind) => kind === "top_up" || (entrySums[kind] ?? 0n) !== 0n,
	);
	const rows: [TextId, bigint][] = [
		["Opening balance", statement.openingNanoUsd],
		...kinds.map((kind): [TextId, bigint] => [SUMS[kind], entrySums[kind] ?? 0n]),
		["Usage", -statement.usageNanoUsd],
	];
	const promoted = statement.promotionUsedNanoUsd;
	if (statement.lateNanoUsd !== 0n) rows.push([LINE_KINDS.late_usage, -statement.lateNanoUsd]);
	rows.push(["Closing balance", statement.closingNanoUsd]);
	const shown = rows.map(([name, amount]) => ({ cells: [translateId(language, name)], amount }));
	const strong = shown.map((row, at) => ({ ...row, strong: at === 0 || at === shown.length - 1 }));
	// Printed below the closing balance, because it is a part of the usage that the balance already contains.
	if (promoted !== 0n)
		strong.push({
			cells: [translateId(language, "Usage paid by promotional credit")],
			amount: promoted,
			strong: false,
		});
	return tableOf(language, "Summary", strong);
}

function movements({ lines, language }: DocumentDetails): DocumentTable {
	const rows = lines
		.filter(({ kind }) => kind !== "usage")
		.map(({ day, kind, description, amountNanoUsd, url }) => ({
			cells: [day, translateId(language, LINE_KINDS[kind]), description],
			...{ amount: amountNanoUsd, url },
		}));
	return tableOf(language, "Movements", rows);
}

function usageTables({ statement, language, logUrl }: DocumentDetails): DocumentTable[] {
	const { fromMs, toMs, usage } = statement;
	const whole = { from: String(fromMs), to: String(toMs) };
	const names = new Map(usage.map(({ projectId, projectName }) => [projectId, projectName]));
	names.set("", translateId(language, "No project"));
	const row = (name: string, sum: Sum, query: Record<string, string>) => ({
		cells: [
			name,
			translateId(language, sum.requests === 1n ? "{count} request" : "{count} requests", {
				count: grouped(language, sum.requests),
			}),
			translateId(language, "{count} tokens", { count: grouped(language, sum.tokens) }),
		],
		amount: -sum.amount,
		url: logUrl(query),
	});
	const dearestFirst = (sums: Map<string, Sum>) => [...sums].sort(([, a], [, b]) => (a.amount > b.amount ? -1 : 1));
	const byModel = dearestFirst(summed(usage, ({ model }) => model));
	const byProject = dearestFirst(summed(usage, ({ projectId }) => projectId));
	const byDay = [...summed(usage, ({ day }) => day)];
	return [
		tableOf(
			language,
			"Usage by model",
			byModel.map(([model, sum]) => row(model, sum, { ...whole, model })),
		),
		tableOf(
			language,
			"Usage by project",
			usage.every(({ projectId }) => projectId === "")
				? []
				: byProject.map(([id, sum]) => row(names.get(id) ?? id, sum, { ...whole, project: id || "none" })),
		),
		tableOf(
			language,
			"Usage by day",
			byDay.map(([day, sum]) => {
				const from = Date.parse(`${day}T00:00:00Z`);
				return row(day, sum, { from: String(from), to: String(from + DAY_MS) });
			}),
		),
	];
}

interface Sum {
	requests: bigint;
	tokens: bigint;
	amount: bigint;
}

function summed(usage: Statement["usage"], nameOf: (row: Statement["usage"][number]) => string): Map<string, Sum> {
	const sums = new Map<string, Sum>();
	for (const used of usage) {
		const name = nameOf(used);
		const sum = sums.get(name) ?? { requests: 0n, tokens: 0n, amount: 0n };
		sum.requests += used.requests;
		sum.tokens += used.promptTokens + used.completionTokens;
		sum.amount += used.chargedNanoUsd;
		sums.set(name, sum);
	}
	return sums;
}

/** All amounts have as many decimals as the longest one, so that decimal points align. */
function tableOf(
	language: Language,
	title: TextId,
	all: readonly (Omit<DocumentRow, "amount"> & { readonly amount: bigint })[],
) {
	const rows = all.slice(0, ROWS_MAX);
	const left = all.length - rows.length;
	const count = left >= ENTRIES_MAX ? translateId(language, "Many") : left;
	const shown = rows.map(({ amount }) => exactUsd(amount));
	const decimals = Math.max(2, ...shown.map((text) => text.split(".")[1]?.length ?? 0));
	const { point } = language === "de" ? GERMAN_USD : ENGLISH_USD;
	return {
		title: translateId(language, title),
		more: left === 0 ? null : translateId(language, "{count} more are in the CSV.", { count }),
		rows: rows.map((row, index): DocumentRow => {
			const [whole = "", fraction = ""] = (shown[index] ?? "").replace("-", "").split(".");
			const sign = row.amount < 0n ? "−" : "";
			return { ...row, amount: `${sign}${grouped(language, whole)}${point}${fraction.padEnd(decimals, "0")}` };
		}),
	};
}

const grouped = (language: Language, whole: bigint | string): string =>
	String(whole).replace(/\B(?=(\d{3})+$)/g, (language === "de" ? GERMAN_USD : ENGLISH_USD).group);

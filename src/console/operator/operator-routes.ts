import { Elysia, type Static, t } from "elysia";
import { requestLanguage } from "../../base/language.ts";
import { accountOfFinding, closeFinding } from "../../billing/stripe-findings.ts";
import { confirmTransfer, rejectTransfer } from "../../billing/top-up-checks.ts";
import { getTopUp, TOP_UP_STATES, type TopUpState } from "../../billing/top-ups.ts";
import { idOf, pageFrom } from "../../db/page.ts";
import { getAccount, suspendAccount, unsuspendAccount, updateAccount } from "../../keys/account-admin.ts";
import { displaySumOfColumn } from "../../money/nano-usd.ts";
import { listAudit, writeAudit } from "../../ops/audit.ts";
import { PAGE_QUERY, type Parts, REASON_FIELD } from "../console-deps.ts";
import type { Operator } from "../console-session.ts";
import { topUpView } from "../credit/credit.ts";
import { journalCsv, listJournals, readJournal } from "../statement/journal.ts";
import { csvFile } from "../statement/statement-lines.ts";
import { parseRange, RANGE_QUERY, usageCsv } from "../usage/usage-routes.ts";
import { accountDetail, searchAccounts } from "./operator-accounts.ts";
import { adjustmentRoutes } from "./operator-adjustments.ts";
import { listDeployments, listInstances } from "./operator-cluster.ts";
import { refuseOwnAccount } from "./operator-interest.ts";
import { operatorSummary } from "./operator-summary.ts";
import { listTopUpsByState } from "./operator-top-ups.ts";
import { checkBooks, listReconciliations, translateRun } from "./reconciliation.ts";
import { marginCsv, type RevenueFilter, revenueFigures, revenueSeries, serviceFigures } from "./revenue.ts";

const text = t.Optional(t.String({ maxLength: 320 }));
const REASON_BODY = t.Object({ reason: REASON_FIELD });
const TERMS_BODY = t.Object({
	tags: t.Array(t.String({ maxLength: 40 }), { maxItems: 20 }),
	tokensPerMinute: t.Nullable(t.Integer({ minimum: 1 })),
});

/** Each group of routes checks for an operator first. The audit log has each action before its response is sent. */
export function operatorRoutes(
	parts: Parts<"statements" | "fence" | "tx" | "books" | "clock" | "config" | "deployments" | "sessions">,
) {
	return new Elysia({ name: "console-operator", prefix: "/operator" })
		.use(accountRoutes(parts))
		.use(adjustmentRoutes(parts))
		.use(topUpRoutes(parts))
		.use(revenueRoutes(parts))
		.use(serviceRoutes(parts));
}

const REVENUE_GROUP = t.Union([t.Literal("model"), t.Literal("account"), t.Literal("project"), t.Literal("code")]);

function revenueRoutes({ statements, sessions, clock }: Parts<"statements" | "clock" | "sessions">) {
	const query = t.Object({ ...RANGE_QUERY, group: t.Optional(REVENUE_GROUP) });
	const filterOf = ({ group = "model", model, ...range }: Static<typeof query>): RevenueFilter => {
		return { ...parseRange(range, clock.wallMs()), group, model: model ?? null };
	};
	return new Elysia({ name: "console-operator-revenue" })
		.resolve(({ request }) => ({ operator: sessions.operator(request) }))
		.guard({ query })
		.get("/revenue", ({ query }) => revenueSeries(statements, filterOf(query)))
		.get("/revenue.csv", async ({ query }) => usageCsv(await revenueSeries(statements, filterOf(query)), "revenue"))
		.get("/figures", ({ query }) => revenueFigures(statements, filterOf(query), clock.wallMs()))
		.get("/service", ({ query }) => serviceFigures(statements, filterOf(query)))
		.get("/margin.csv", async ({ query }) =>
			csvFile(marginCsv((await serviceFigures(statements, filterOf(query))).earned), "margin.csv"),
		);
}

function accountRoutes({ statements, sessions, clock, fence }: Parts<"statements" | "fence" | "clock" | "sessions">) {
	async function changeState(operator: Operator, id: string, state: "suspended" | "active", reason: string) {
		await refuseOwnAccount(statements, operator.userId, id);
		const act = operator.noted(state === "suspended" ? "account.suspend" : "account.unsuspend", { reason });
		const entry = await (state === "suspended" ? suspendAccount : unsuspendAccount)(statements, id, act);
		return { state, fence: await fence(operator, entry, act) };
	}

	return new Elysia({ name: "console-operator-accounts" })
		.resolve(({ request }) => ({ operator: sessions.operator(request) }))
		.get(
			"/accounts",
			({ query }) => pageFrom(query, (page) => searchAccounts(statements, query.q ?? null, page), idOf),
			{ query: t.Object({ ...PAGE_QUERY, q: text }) },
		)
		.post("/accounts/:id/view", async ({ operator: { userId, connection }, params }) => {
			const { id } = await getAccount(statements, params.id);
			await writeAudit(statements, {
				actor: userId,
				action: "account.view",
				subject: id,
				accountId: id,
				ip: connection.address,
			});
			return { id };
		})
		.get("/accounts/:id", ({ params }) => accountDetail(statements, params.id, clock.wallMs()))
		.put(
			"/accounts/:id/terms",
			async ({ operator, params, body }) => {
				await refuseOwnAccount(statements, operator.userId, params.id);
				const act = operator.noted("account.terms", body);
				const { entry } = await updateAccount(statements, params.id, body, null, [act]);
				return { fence: entry === null ? null : await fence(operator, entry, act) };
			},
			{ body: TERMS_BODY },
		)
		.guard({ schema: "standalone", body: REASON_BODY })
		.post("/accounts/:id/suspend", ({ operator, params, body }) =>
			changeState(operator, params.id, "suspended", body.reason),
		)
		.post("/accounts/:id/unsuspend", ({ operator, params, body }) =>
			changeState(operator, params.id, "active", body.reason),
		);
}

function topUpRoutes({ statements, tx, sessions, config }: Parts<"statements" | "tx" | "config" | "sessions">) {
	async function decidedBy(operator: Operator, accountId: string | null) {
		await refuseOwnAccount(statements, operator.userId, accountId);
		return { operatorId: operator.userId, ip: operator.connection.address };
	}
	const ofTopUp = async (operator: Operator, id: string) =>
		decidedBy(operator, (await getTopUp(statements, id)).accountId);

	return new Elysia({ name: "console-operator-top-ups" })
		.resolve(({ request }) => ({ operator: sessions.operator(request) }))
		.get(
			"/top-ups",
			({ query }) => {
				const state: TopUpState = query.state ?? "pending";
				return pageFrom(query, (page) => listTopUpsByState(statements, state, page, config.topUpSecondLook), idOf);
			},
			{ query: t.Object({ ...PAGE_QUERY, state: t.Optional(t.UnionEnum(TOP_UP_STATES)) }) },
		)
		.post(
			"/top-ups/:id/confirm",
			async ({ operator, params, body }) => {
				const by = await ofTopUp(operator, params.id);
				const check = { topUpId: params.id, transactionReference: body.transactionReference.trim(), ...by };
				const { secondLookNeeded } = await confirmTransfer(tx, check, config.topUpSecondLook);
				const topUp = await getTopUp(statements, params.id);
				return { topUp: topUpView(topUp), secondLookNeeded };
			},
			{ body: t.Object({ transactionReference: t.String({ minLength: 3, maxLength: 200 }) }) },
		)
		.post(
			"/top-ups/:id/reject",
			async ({ operator, params, body }) => {
				const rejection = { topUpId: params.id, reason: body.reason, ...(await ofTopUp(operator, params.id)) };
				return { topUp: topUpView(await rejectTransfer(statements, rejection)) };
			},
			{ body: REASON_BODY },
		)
		.post(
			"/payment-findings/close",
			async ({ operator, body }) => {
				const by = await decidedBy(operator, await accountOfFinding(statements, body.id));
				await closeFinding(statements, { id: body.id, reason: body.reason, ...by });
				return { closed: true };
			},
			{ body: t.Object({ id: t.String({ maxLength: 200 }), reason: REASON_FIELD }) },
		);
}

function serviceRoutes(parts: Parts<"statements" | "books" | "clock" | "config" | "deployments" | "sessions">) {
	const { statements, sessions } = parts;
	return new Elysia({ name: "console-operator-service" })
		.resolve(({ request }) => ({ operator: sessions.operator(request) }))
		.get("/summary", () => operatorSummary(parts))
		.get("/deployments", async () => ({ items: await listDeployments(parts) }))
		.get("/instances", async () => ({ items: await listInstances(statements) }))
		.get("/journals", async () => ({
			items: (await listJournals(statements)).map(({ month, closedAtMs, deferredNanoUsd, promotionalNanoUsd }) => ({
				...{ month, closedAtMs, deferredNanoUsd: displaySumOfColumn(deferredNanoUsd) },
				promotionalNanoUsd: displaySumOfColumn(promotionalNanoUsd),
			})),
		}))
		.get(
			"/journal.csv",
			async ({ query: { month = "" } }) =>
				csvFile(journalCsv(await readJournal(statements, month)), `journal-${month}.csv`),
			{ query: t.Object({ month: t.Optional(t.String({ maxLength: 7 })) }) },
		)
		.get("/reconciliation", ({ request }) => listReconciliations(statements, requestLanguage(request.headers)))
		.post("/reconciliation", async ({ operator: { userId, connection }, request }) => {
			const run = await checkBooks(parts, connection, userId);
			const done = { action: "ledger.reconcile", subject: run.id, accountId: null } as const;
			await writeAudit(statements, { actor: userId, ip: connection.address, ...done, detail: { ok: run.ok } });
			return translateRun(run, requestLanguage(request.headers));
		})
		.get(
			"/audit",
			({ query }) => {
				const { subject, actor, action } = query;
				return pageFrom(query, (page) => listAudit(statements, { subject, actor, action }, page), idOf);
			},
			{ query: t.Object({ ...PAGE_QUERY, subject: text, actor: text, action: text }) },
		);
}

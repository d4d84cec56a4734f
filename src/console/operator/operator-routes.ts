import { Elysia, t } from "elysia";
import { languageOf } from "../../base/language.ts";
import { accountOfFinding, closeFinding } from "../../billing/stripe-findings.ts";
import { confirmTransfer, rejectTransfer } from "../../billing/top-up-checks.ts";
import type { TopUpState } from "../../billing/top-ups.ts";
import { getTopUp } from "../../billing/top-ups.ts";
import { suspendAccount, unsuspendAccount } from "../../keys/account-admin.ts";
import { audit, listAudit, noted, noteOutcome } from "../../ops/audit.ts";
import type { AuditAction } from "../../ops/audit-action.ts";
import type { ConsoleParts } from "../console-deps.ts";
import { topUpView } from "../credit/credit.ts";
import { fenceOf } from "../keys/fence-view.ts";
import { EMPTY_BODY, PAGE_QUERY, pageOf, pageOfRows, REASON } from "../page-query.ts";
import { managementKeyRoutes } from "./management-key-routes.ts";
import { accountDetail, searchAccounts } from "./operator-accounts.ts";
import { adjustmentRoutes } from "./operator-adjustments.ts";
import { listDeployments, listInstances } from "./operator-cluster.ts";
import { refuseOwnAccount } from "./operator-interest.ts";
import { operatorSummary } from "./operator-summary.ts";
import { listWaiting } from "./operator-top-ups.ts";
import { checkBooks, listReconciliations, toldRun } from "./reconciliation.ts";

/** What is looked for may be an address of mail, of any length that one may have. */
const text = t.Optional(t.String({ maxLength: 320 }));
const pageQuery = t.Object({ ...PAGE_QUERY, q: text });
const REASON_BODY = t.Object({ reason: REASON });
const TOP_UP_STATE = t.Union([
	t.Literal("pending"),
	t.Literal("confirmed"),
	t.Literal("rejected"),
	t.Literal("refunded"),
	t.Literal("disputed"),
]);

/** Every handler asks for the operator first; every act is in the audit log before it is answered. */
export function operatorRoutes(parts: ConsoleParts) {
	return new Elysia({ name: "console-operator", prefix: "/operator" })
		.use(accountRoutes(parts))
		.use(adjustmentRoutes(parts))
		.use(topUpRoutes(parts))
		.use(managementKeyRoutes(parts))
		.use(serviceRoutes(parts));
}

function actOf({ statements, visits }: ConsoleParts) {
	return (
		request: Request,
		action: AuditAction,
		subject: string,
		accountId: string | null,
		detail: Record<string, unknown>,
	) => {
		const { userId } = visits.operator(request);
		const ip = visits.of(request).connection.address;
		return audit(statements, { actor: userId, action, subject, accountId, ip, detail });
	};
}

function accountRoutes(parts: ConsoleParts) {
	const { statements, visits, clock } = parts;

	function changeState(state: "suspended" | "active") {
		return async ({
			request,
			params,
			body,
		}: {
			request: Request;
			params: { id: string };
			body: { reason: string };
		}) => {
			const { userId } = visits.operator(request);
			await refuseOwnAccount(statements, userId, params.id);
			const change = state === "suspended" ? suspendAccount : unsuspendAccount;
			const act = noted({
				...{ actor: userId, action: state === "suspended" ? "account.suspend" : "account.unsuspend" },
				...{ ip: visits.of(request).connection.address, detail: { reason: body.reason } },
			});
			const { id: _, ...entry } = await change(statements, params.id, act);
			const fence = await fenceOf(parts, visits.of(request).connection, entry);
			await noteOutcome(statements, act, fence);
			return { state, fence };
		};
	}

	return new Elysia({ name: "console-operator-accounts" })
		.get(
			"/accounts",
			async ({ request, query }) => {
				visits.operator(request);
				const { shown, asked, after } = pageOf(query);
				return pageOfRows(await searchAccounts(statements, query.q ?? null, { asked, after }), shown, (row) => row.id);
			},
			{ query: pageQuery },
		)
		.get("/accounts/:id", ({ request, params }) => {
			visits.operator(request);
			return accountDetail(statements, params.id, clock.wallMs());
		})
		.post("/accounts/:id/suspend", changeState("suspended"), { body: REASON_BODY })
		.post("/accounts/:id/unsuspend", changeState("active"), { body: REASON_BODY });
}

function topUpRoutes(parts: ConsoleParts) {
	const { statements, tx, visits, config } = parts;
	return new Elysia({ name: "console-operator-top-ups" })
		.get(
			"/top-ups",
			async ({ request, query }) => {
				visits.operator(request);
				const { shown, asked, after } = pageOf(query);
				const state: TopUpState = query.state ?? "pending";
				const rows = await listWaiting(statements, state, { asked, after }, config.topUpSecondLook);
				return pageOfRows(rows, shown, (row) => row.id);
			},
			{ query: t.Object({ ...PAGE_QUERY, state: t.Optional(TOP_UP_STATE) }) },
		)
		.post(
			"/top-ups/:id/confirm",
			async ({ request, params, body }) => {
				const { userId } = visits.operator(request);
				await refuseOwnAccount(statements, userId, (await getTopUp(statements, params.id)).accountId);
				const check = {
					topUpId: params.id,
					transactionReference: body.transactionReference.trim(),
					operatorId: userId,
					ip: visits.of(request).connection.address,
				};
				const { secondLookNeeded } = await confirmTransfer(tx, check, config.topUpSecondLook);
				const topUp = await getTopUp(statements, params.id);
				return { topUp: topUpView(topUp), secondLookNeeded };
			},
			{ body: t.Object({ transactionReference: t.String({ minLength: 3, maxLength: 200 }) }) },
		)
		.post(
			"/top-ups/:id/reject",
			async ({ request, params, body }) => {
				const { userId } = visits.operator(request);
				await refuseOwnAccount(statements, userId, (await getTopUp(statements, params.id)).accountId);
				const ip = visits.of(request).connection.address;
				const rejection = { topUpId: params.id, operatorId: userId, reason: body.reason, ip };
				return { topUp: topUpView(await rejectTransfer(statements, rejection)) };
			},
			{ body: REASON_BODY },
		)
		.post(
			"/payment-findings/close",
			async ({ request, body }) => {
				const { userId } = visits.operator(request);
				await refuseOwnAccount(statements, userId, await accountOfFinding(statements, body.id));
				const ip = visits.of(request).connection.address;
				await closeFinding(statements, { id: body.id, operatorId: userId, reason: body.reason, ip });
				return { closed: true };
			},
			{ body: t.Object({ id: t.String({ maxLength: 200 }), reason: REASON }) },
		);
}

function serviceRoutes(parts: ConsoleParts) {
	const { statements, visits } = parts;
	const act = actOf(parts);
	return new Elysia({ name: "console-operator-service" })
		.get("/summary", ({ request }) => {
			visits.operator(request);
			return operatorSummary(parts);
		})
		.get("/deployments", async ({ request }) => {
			visits.operator(request);
			return { items: await listDeployments(parts) };
		})
		.get("/instances", async ({ request }) => {
			visits.operator(request);
			return { items: await listInstances(statements) };
		})
		.get("/reconciliation", ({ request }) => {
			visits.operator(request);
			return listReconciliations(statements, languageOf(request.headers));
		})
		.post(
			"/reconciliation",
			async ({ request }) => {
				const { userId } = visits.operator(request);
				const run = await checkBooks(parts, visits.of(request).connection, userId);
				await act(request, "ledger.reconcile", run.id, null, { ok: run.ok });
				return toldRun(run, languageOf(request.headers));
			},
			{ body: EMPTY_BODY },
		)
		.get(
			"/audit",
			async ({ request, query }) => {
				visits.operator(request);
				const { shown, asked, after } = pageOf(query);
				const { subject, actor, action } = query;
				const rows = await listAudit(statements, { subject, actor, action }, { asked, after });
				return pageOfRows(rows, shown, (row) => row.id);
			},
			{ query: t.Object({ ...PAGE_QUERY, subject: text, actor: text, action: text }) },
		);
}

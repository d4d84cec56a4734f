import { LONG_MODEL, MODEL, type Stage } from "./stage.ts";

export type Who = "visitor" | "rich" | "extreme" | "fresh" | "operator";

/**
 * A page: its name in findings and pictures, its viewer and its path. `like` names a page with the same parts and
 * longer texts, which the short form visits instead.
 */
export type StagePage = readonly [name: string, who: Who, path: (stage: Stage) => string, like?: string];

/** Every page for every kind of viewer that may open it. */
export const PAGES: readonly StagePage[] = [
	["landing", "visitor", () => "/"],
	["sign-in", "visitor", () => "/sign-in", "sign-up"],
	["sign-up", "visitor", () => "/sign-up"],
	["verify", "visitor", () => "/verify", "invite"],
	["verify-failed", "visitor", () => "/verify?error=TOKEN_EXPIRED", "invite"],
	["reset", "visitor", () => "/reset", "sign-up"],
	["reset-new", "visitor", () => "/reset?token=nothing", "sign-up"],
	["models", "visitor", () => "/models"],
	["model", "visitor", () => `/models/${MODEL}`, "extreme-model"],
	["model-slash-id", "visitor", () => "/models/qwen/qwen3-32b", "extreme-model"],
	["docs", "visitor", () => "/docs"],
	["docs-tools", "visitor", () => "/docs/tools", "docs"],
	["docs-moving", "visitor", () => "/docs/moving", "docs"],
	["docs-errors", "visitor", () => "/docs/errors"],
	["docs-batches", "visitor", () => "/docs/batches", "docs"],
	["docs-limits", "visitor", () => "/docs/limits", "docs"],
	["docs-roles", "visitor", () => "/docs/roles", "docs-errors"],
	["docs-api", "visitor", () => "/docs/api"],
	["not-found", "visitor", () => "/nowhere", "request-missing"],
	["overview-empty", "fresh", () => "/overview"],
	["keys-empty", "fresh", () => "/keys"],
	["projects-empty", "fresh", () => "/projects", "keys-empty"],
	["credit-empty", "fresh", () => "/credit", "keys-empty"],
	["usage-empty", "fresh", () => "/usage", "keys-empty"],
	["requests-empty", "fresh", () => "/requests", "keys-empty"],
	["playground-empty", "fresh", () => "/playground"],
	["invite", "fresh", () => "/invite?token=nothing"],
	["overview", "rich", () => "/overview", "extreme-overview"],
	["keys", "rich", () => "/keys", "extreme-keys"],
	["key", "rich", ({ ids }) => `/keys/${ids.key}`, "extreme-key"],
	["key-create", "rich", () => "/keys?create=1"],
	["projects", "rich", () => "/projects", "extreme-keys"],
	["project", "rich", ({ ids }) => `/projects/${ids.project}`, "extreme-key"],
	["credit", "rich", () => "/credit#held", "extreme-credit"],
	["usage", "rich", () => "/usage?range=30d", "extreme-usage"],
	["usage-tokens", "rich", () => "/usage?range=30d&show=tokens&group=key", "extreme-usage-tokens"],
	["requests", "rich", () => "/requests", "extreme-requests"],
	["request", "rich", ({ ids }) => `/requests/${ids.request}`, "extreme-request"],
	["requests-refused", "rich", () => "/requests?status=refused", "extreme-requests"],
	["request-refused", "rich", ({ ids }) => `/requests/${ids.refused}`, "extreme-request-refused"],
	["request-missing", "rich", () => "/requests/req_0"],
	["batches", "rich", () => "/batches"],
	["batch-missing", "rich", () => "/batches/batch_0", "request-missing"],
	["playground", "rich", () => "/playground", "extreme-playground"],
	["settings", "rich", () => "/settings"],
	["extreme-overview", "extreme", () => "/overview"],
	["extreme-keys", "extreme", () => "/keys"],
	["extreme-key", "extreme", ({ ids }) => `/keys/${ids.extremeKey}`],
	["extreme-projects", "extreme", () => "/projects", "extreme-keys"],
	["extreme-project", "extreme", ({ ids }) => `/projects/${ids.extremeProject}`, "extreme-key"],
	["extreme-credit", "extreme", () => "/credit"],
	["extreme-usage", "extreme", () => "/usage?range=30d"],
	["extreme-usage-tokens", "extreme", () => "/usage?range=30d&show=tokens&group=key", "extreme-usage"],
	["extreme-requests", "extreme", () => "/requests?range=30d"],
	["extreme-request", "extreme", ({ ids }) => `/requests/${ids.extremeRequest}`],
	["extreme-request-refused", "extreme", ({ ids }) => `/requests/${ids.extremeRefused}`],
	["extreme-model", "extreme", () => `/models/${LONG_MODEL}`],
	["extreme-playground", "extreme", () => "/playground"],
	["operator", "operator", () => "/operator"],
	["operator-top-ups", "operator", () => "/operator/top-ups", "operator-accounts"],
	["operator-accounts", "operator", () => "/operator/accounts"],
	["operator-account", "operator", ({ rich }) => `/operator/accounts/${rich.accountId}`, "operator-account-extreme"],
	["operator-account-extreme", "operator", ({ extreme }) => `/operator/accounts/${extreme.accountId}`],
	["operator-deployments", "operator", () => "/operator/deployments"],
	["operator-instances", "operator", () => "/operator/instances"],
	["operator-reconciliation", "operator", () => "/operator/reconciliation"],
	["operator-audit", "operator", () => "/operator/audit"],
	["operator-management-keys", "operator", () => "/operator/management-keys", "operator-audit"],
	["operator-not-found", "operator", () => "/operator/nowhere", "request-missing"],
];

/** Pages of the short form: those that have no page `like` them. */
export const PAGES_SHORT: readonly StagePage[] = PAGES.filter(([, , , like]) => like === undefined);

/** True if the page also exists with the longest names and amounts. */
export const isThereLonger = ([name]: StagePage): boolean => PAGES.some(([other]) => other === `extreme-${name}`);

import { can, type Right, type Role } from "../console/views.ts";
import type { IconName } from "./parts/icons.tsx";
import { t } from "./texts.tsx";

export interface MenuEntry {
	readonly to: string;
	readonly label: string;
	readonly icon: IconName;
	/** True for a page outside the console's router, which the browser loads as a new document. */
	readonly apart?: true;
	/** Second key of the keyboard shortcut; the first is `g`. */
	readonly key: string;
	readonly right?: Right;
}

const DESTINATIONS: readonly MenuEntry[] = [
	{ to: "/overview", label: t("Overview"), icon: "overview", key: "o" },
	{ to: "/keys", label: t("Keys"), icon: "keys", key: "k" },
	{ to: "/projects", label: t("Projects"), icon: "projects", key: "j", right: "projects.see" },
	{ to: "/credit", label: t("Credit"), icon: "credit", key: "c", right: "credit.see" },
	{ to: "/usage", label: t("Usage"), icon: "usage", key: "u" },
	{ to: "/requests", label: t("Requests"), icon: "requests", key: "r" },
	{ to: "/batches", label: t("Batches"), icon: "batches", key: "b" },
	{ to: "/playground", label: t("Playground"), icon: "playground", key: "p", right: "requests.send" },
	{ to: "/models", label: t("Models"), icon: "models", key: "m" },
	{ to: "/docs", label: t("Docs"), icon: "docs", key: "d" },
	{ to: "/status", label: t("Status"), icon: "status", key: "t", apart: true },
	{ to: "/settings", label: t("Settings"), icon: "settings", key: "s" },
];

export const OPERATOR_DESTINATIONS: readonly MenuEntry[] = [
	{ to: "/operator", label: t("Revenue"), icon: "usage", key: "1" },
	{ to: "/operator/top-ups", label: t("Top-ups"), icon: "credit", key: "2" },
	{ to: "/operator/accounts", label: t("Accounts"), icon: "user", key: "3" },
	{ to: "/operator/deployments", label: t("Deployments"), icon: "models", key: "4" },
	{ to: "/operator/instances", label: t("Instances"), icon: "instances", key: "5" },
	{ to: "/operator/reconciliation", label: t("Reconciliation"), icon: "check", key: "6" },
	{ to: "/operator/audit", label: t("Audit"), icon: "requests", key: "7" },
	{ to: "/operator/management-keys", label: t("Management keys"), icon: "keys", key: "8" },
];

/** Navigation entries for a role; undefined, a viewer without an account: all entries. */
export function destinationsFor(role: Role | undefined): readonly MenuEntry[] {
	return DESTINATIONS.filter(({ right }) => right === undefined || role === undefined || can(role, right));
}

/** Page to open after signing in: `next`; for `/` the viewer's first page. */
export function pageAfterSignIn(next: string, { user }: { user: { operator: boolean } }): string {
	return next !== "/" ? next : user.operator ? "/operator" : "/overview";
}

export const PUBLIC_DESTINATIONS = DESTINATIONS.filter(({ to }) => ["/models", "/docs", "/status"].includes(to));

export function isCurrentPage(to: string, path: string): boolean {
	return path === to || (to !== "/operator" && path.startsWith(`${to}/`));
}

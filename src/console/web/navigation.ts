import { may, type Right, type Role } from "../members/roles.ts";
import type { IconName } from "./parts/icons.tsx";

export interface Destination {
	readonly to: string;
	readonly label: string;
	readonly icon: IconName;
	/** Not one of these pages: it is loaded as a whole. */
	readonly apart?: true;
	/** Pressed after `g`. */
	readonly key: string;
	/** Asked of a member's role. */
	readonly right?: Right;
}

const DESTINATIONS: readonly Destination[] = [
	{ to: "/overview", label: "Overview", icon: "overview", key: "o" },
	{ to: "/keys", label: "Keys", icon: "keys", key: "k" },
	{ to: "/credit", label: "Credit", icon: "credit", key: "c", right: "credit.see" },
	{ to: "/usage", label: "Usage", icon: "usage", key: "u" },
	{ to: "/requests", label: "Requests", icon: "requests", key: "r" },
	{ to: "/batches", label: "Batches", icon: "batches", key: "b" },
	{ to: "/playground", label: "Playground", icon: "playground", key: "p", right: "requests.send" },
	{ to: "/models", label: "Models", icon: "models", key: "m" },
	{ to: "/docs", label: "Docs", icon: "docs", key: "d" },
	{ to: "/status", label: "Status", icon: "status", key: "t", apart: true },
	{ to: "/settings", label: "Settings", icon: "settings", key: "s" },
];

export const OPERATOR_DESTINATIONS: readonly Destination[] = [
	{ to: "/operator", label: "Today", icon: "operator", key: "1" },
	{ to: "/operator/top-ups", label: "Top-ups", icon: "credit", key: "2" },
	{ to: "/operator/accounts", label: "Accounts", icon: "user", key: "3" },
	{ to: "/operator/deployments", label: "Deployments", icon: "models", key: "4" },
	{ to: "/operator/instances", label: "Instances", icon: "overview", key: "5" },
	{ to: "/operator/reconciliation", label: "Reconciliation", icon: "check", key: "6" },
	{ to: "/operator/audit", label: "Audit", icon: "requests", key: "7" },
	{ to: "/operator/management-keys", label: "Management keys", icon: "keys", key: "8" },
];

/** What a member may see; who has no account sees all, and is told there how to get one. */
export function destinationsFor(role: Role | undefined): readonly Destination[] {
	return DESTINATIONS.filter(({ right }) => right === undefined || role === undefined || may(role, right));
}

/** What a visitor may see. */
export const PUBLIC_DESTINATIONS = DESTINATIONS.filter(({ to }) => ["/models", "/docs", "/status"].includes(to));

export function isCurrent(to: string, path: string): boolean {
	return path === to || (to !== "/operator" && path.startsWith(`${to}/`));
}

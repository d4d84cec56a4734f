import { RIGHTS, type Right, ROLE_LABELS, type Role } from "../console/views.ts";
import type { RequestRow } from "./api.ts";
import { isolatedText, t } from "./texts.tsx";

/** Labels for codes of the API, equal on all pages. */

export const REQUEST_STATUSES: Readonly<Record<RequestRow["statusClass"], string>> = {
	ok: t("Completed"),
	failed: t("Failed"),
	left: t("Client disconnected"),
};

export const roleName = (role: Role): string => t(ROLE_LABELS[role]);
/** Text of a right that follows "may …". */
export const rightText = (right: Right): string => t(RIGHTS[right].says);

/** Explains when the low-credit mail is sent. The threshold applies to the balance, which includes held credit. */
export const mailedBelow = (threshold: string): string =>
	t("Owners, admins and billing members get a mail when the balance falls below {threshold}.", { threshold });

/** Name of a key with its last four characters, because names need not be unique. */
export const keyLabel = ({ name, lastFour }: { readonly name: string; readonly lastFour: string }): string =>
	`${isolatedText(name)} …${lastFour}`;

const STATES: Readonly<Record<string, string>> = {
	active: t("Active"),
	archived: t("Archived"),
	revoked: t("Revoked"),
	expired: t("Expired"),
	pending: t("Pending"),
	confirmed: t("Confirmed"),
	rejected: t("Rejected"),
	refunded: t("Refunded"),
	disputed: t("Disputed"),
	suspended: t("Suspended"),
	cancelled: t("Cancelled"),
	completed: t("Completed"),
	failed: t("Failed"),
	validating: t("Validating"),
	in_progress: t("In progress"),
	finalizing: t("Finalizing"),
	cancelling: t("Cancelling"),
	live: t("Live"),
	silent: t("Unresponsive"),
	dead: t("Dead"),
	ended: t("Ended"),
	draining: t("Draining"),
	starting: t("Starting"),
	healthy: t("Healthy"),
	unhealthy: t("Unhealthy"),
	unknown: t("Unknown"),
	up: t("Up"),
	down: t("Down"),
	sent: t("Sent"),
	delivered: t("Delivered"),
};

/** Label of a state. A state that this version does not know is shown as its code. */
export const stateText = (code: string): string =>
	STATES[code] ?? code.slice(0, 1).toUpperCase() + code.slice(1).replaceAll("_", " ");

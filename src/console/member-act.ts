import { audit, type Noted, noted } from "../ops/audit.ts";
import type { AuditAction } from "../ops/audit-action.ts";
import type { ConsoleParts } from "./console-deps.ts";

/** Writes down which member did what to the visited account, before it is answered. */
export function memberAct({ statements, visits }: ConsoleParts) {
	return (request: Request, action: AuditAction, subject: string, detail: Record<string, unknown> = {}) => {
		const { viewer, accountId } = visits.account(request);
		const ip = visits.of(request).connection.address;
		return audit(statements, { actor: viewer.userId, action, subject, accountId, ip, detail });
	};
}

/** The same for an act whose statement writes it down itself. */
export function memberNoted({ visits }: ConsoleParts) {
	return (request: Request, action: AuditAction, detail: Record<string, unknown> = {}): Noted =>
		noted({
			...{ actor: visits.account(request).viewer.userId, action, detail },
			ip: visits.of(request).connection.address,
		});
}

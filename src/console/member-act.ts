import { type Noted, noted } from "../ops/audit.ts";
import type { AuditAction } from "../ops/audit-action.ts";
import type { ConsoleParts } from "./console-deps.ts";

/** Which member did what to the visited account, as the statement that does it writes it down. */
export function memberNoted({ visits }: ConsoleParts) {
	return (request: Request, action: AuditAction, detail: Record<string, unknown> = {}): Noted =>
		noted({
			...{ actor: visits.account(request).viewer.userId, action, detail },
			ip: visits.of(request).connection.address,
		});
}

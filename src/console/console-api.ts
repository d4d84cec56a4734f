import { Elysia } from "elysia";
import { requestLanguage } from "../base/language.ts";
import { assertStorable } from "../base/stored-text.ts";
import { batchRoutes } from "./batches/batch-routes.ts";
import { companyRoutes } from "./company/company-routes.ts";
import type { ConsoleParts } from "./console-deps.ts";
import { ConsoleError, consoleErrorResponse, faultOfElysia } from "./console-error.ts";
import { alertRoutes, autoTopUpRoutes, creditRoutes } from "./credit/credit-routes.ts";
import { keyRoutes } from "./keys/key-routes.ts";
import { overviewRoutes } from "./live/overview.ts";
import { invitationRoutes } from "./members/invitations.ts";
import { membersRoutes } from "./members/members.ts";
import { checkRoute } from "./members/route-rules.ts";
import { noticeRoutes } from "./notices/notice-routes.ts";
import { managementKeyRoutes } from "./operator/management-key-routes.ts";
import { operatorRoutes } from "./operator/operator-routes.ts";
import { projectRoutes } from "./projects/project-routes.ts";
import { publicRoutes } from "./public-routes.ts";
import { settingsRoutes } from "./settings-routes.ts";
import { sessionRoutes } from "./sign-in/session-routes.ts";
import { statementRoutes } from "./statement/statement-routes.ts";
import { usageRoutes } from "./usage/usage-routes.ts";

export type ConsoleApi = ReturnType<typeof createConsoleApi>;

export function createConsoleApi(parts: ConsoleParts) {
	return new Elysia({ name: "console", prefix: "/api/console", handler: { standardHostname: false } })
		.onError(({ error, code, request }) =>
			consoleErrorResponse(faultOfElysia(error, code), parts.sessions.of(request).requestId, {
				log: parts.log,
				language: requestLanguage(request.headers),
			}),
		)
		.onTransform(({ request, route, params, body }) => {
			// Elysia sets path parameters to null if they cannot be decoded, and omits `params` on routes without parameters.
			if (Object.values(params ?? {}).some((part) => typeof part !== "string"))
				throw new ConsoleError("not_found", "There is no such page.");
			checkRoute(parts, request, route);
			const hasBody = ["POST", "PUT", "PATCH"].includes(request.method);
			if (hasBody && (!(body instanceof Object) || Array.isArray(body)))
				throw new ConsoleError("invalid_request", "A field is missing or malformed.");
			assertStorable(body);
		})
		.use(publicRoutes(parts))
		.use(settingsRoutes(parts))
		.use(sessionRoutes(parts))
		.use(membersRoutes(parts))
		.use(invitationRoutes(parts))
		.use(companyRoutes(parts))
		.use(overviewRoutes(parts))
		.use(keyRoutes(parts))
		.use(projectRoutes(parts))
		.use(creditRoutes(parts))
		.use(alertRoutes(parts))
		.use(autoTopUpRoutes(parts))
		.use(statementRoutes(parts))
		.use(usageRoutes(parts))
		.use(batchRoutes(parts))
		.use(noticeRoutes(parts))
		.use(operatorRoutes(parts))
		.use(managementKeyRoutes(parts));
}

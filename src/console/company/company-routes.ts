import { t } from "elysia";
import { accountRoutes, type Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import { publicUrlProblem } from "../notices/public-request.ts";
import {
	COMPANY_SETTINGS,
	findCompany,
	proofRecordName,
	proofRecordText,
	removeCompany,
	saveCompany,
	verifyDomain,
} from "./company-store.ts";

const VALUES_MAX = 100;
const CLIENT_SECRET = t.Object({ clientSecret: t.Nullable(t.String({ minLength: 1, maxLength: 1_000 })) });

export function companyRoutes(parts: Parts<"statements" | "config" | "consoleSecret" | "sessions" | "origin">) {
	const { statements, config } = parts;

	async function viewOf(accountId: string) {
		const company = await findCompany(statements, { accountId });
		const redirectUri = `${parts.origin()}/api/auth/company/callback`;
		if (company === undefined) return { settings: null, verifiedAtMs: null, record: null, redirectUri };
		const { issuer, clientId, domain, emailTrusted, roleClaim, roleValues, defaultRole, required } = company;
		return {
			settings: { issuer, clientId, domain, emailTrusted, roleClaim, roleValues, defaultRole, required },
			verifiedAtMs: company.verifiedAtMs,
			record: { name: proofRecordName(domain), text: proofRecordText(company.domainToken) },
			redirectUri,
		};
	}

	return accountRoutes(parts, "console-company", "/company-sign-in")
		.get("/", ({ member }) => viewOf(member.accountId))
		.put(
			"/",
			async ({ member: { accountId, noted }, body }) => {
				const { clientSecret, ...settings } = body;
				const problem = publicUrlProblem(settings.issuer, config.production);
				if (problem !== undefined) throw new ConsoleError("invalid_request", problem, { param: "issuer" });
				if (Object.keys(settings.roleValues).length > VALUES_MAX)
					throw new ConsoleError("invalid_request", "At most {count} claim values can be mapped to roles.", {
						values: { count: VALUES_MAX },
						param: "roleValues",
					});
				const secret = parts.consoleSecret;
				const act = noted("company.set", { ...settings, secret: clientSecret === null ? "kept" : "new" });
				await saveCompany(statements, secret, accountId, { ...settings, secret: clientSecret }, act);
				return viewOf(accountId);
			},
			{ body: t.Composite([COMPANY_SETTINGS, CLIENT_SECRET]) },
		)
		.post("/verify", async ({ member: { accountId, noted } }) => {
			await verifyDomain(statements, accountId, undefined, noted("company.verify"));
			return viewOf(accountId);
		})
		.delete("/", async ({ member: { accountId, noted } }) => {
			await removeCompany(statements, accountId, noted("company.remove"));
			return { removed: true };
		});
}

import { expect, test } from "bun:test";
import { createAccount, suspendAccount } from "../../../src/keys/account-admin.ts";
import { untilEnd } from "../../support/at-end.ts";
import { ask, errorOf, expectUncharged } from "../../support/chat.ts";
import { chatModel, withService } from "../../support/service.ts";
import { startUpstream } from "../../support/upstream-server.ts";
import { waitFor } from "../../support/wait.ts";

const upstream = untilEnd(startUpstream());
const service = await withService({
	models: [
		chatModel({ url: upstream.url, extra: "    aliases: [nickname]" }),
		chatModel({ id: "other-model", url: upstream.url }),
	].join("\n"),
});

test("403 model_not_allowed: the allowlist of the key, and no alias gets around it", async () => {
	const { accountId, secret } = await service.customer({ settings: { models: ["other-model"] } });
	for (const model of ["test-model", "nickname"]) {
		const { status, error } = await errorOf(await service.post("/v1/chat/completions", secret, ask("hi", { model })));
		expect(status).toBe(403);
		expect(error).toMatchObject({ code: "model_not_allowed", type: "permission_error", param: "model" });
	}
	await expectUncharged(service, accountId);
	const allowed = await service.post("/v1/chat/completions", secret, ask("hi", { model: "other-model" }));
	expect(allowed.status).toBe(200);
	await allowed.text();
});

test("403 account_suspended: from the moment it is applied", async () => {
	const { accountId, secret } = await service.customer();
	await service.get("/v1/models", secret);
	await suspendAccount(service.db.statements, accountId);
	const post = () => service.post("/v1/chat/completions", secret, ask());
	await waitFor(async () => (await service.get("/v1/models", secret)).status === 403, "the suspension to be applied");
	const { status, error } = await errorOf(await post());
	expect(status).toBe(403);
	expect(error).toMatchObject({ code: "account_suspended", type: "permission_error", param: null });
	await expectUncharged(service, accountId);
});

test("403 sign_in_required: an account whose owner has not been in the console", async () => {
	const { id } = await createAccount(service.db.statements, { email: "new@example.com", vouched: false });
	const { secret } = await service.key(id);
	const { status, error } = await errorOf(await service.post("/v1/chat/completions", secret, ask()));
	expect(status).toBe(403);
	expect(error).toMatchObject({ code: "sign_in_required", type: "permission_error", param: null });
});

import type { Parts } from "../console-deps.ts";

/**
 * Mails an account's owners about a key that an operator created. Returns true if the account has owners: then the
 * operator does not see the secret, and an owner gets a secret by rotating the key.
 */
export async function mailKeyOwners(
	{ statements, mailer, brand, origin }: Parts<"statements" | "mailer" | "brand" | "origin">,
	{ accountId, keyId }: { accountId: string; keyId: string },
): Promise<boolean> {
	const owners = await statements<{ email: string }>`
			select u.email from member m join console_user u on u.id = m.user_id
			where m.account_id = ${accountId} and m.role = 'owner'`;
	const link = `${origin()}/keys/${keyId}?account=${accountId}`;
	const service = brand.serviceName;
	for (const { email } of owners)
		mailer.send({
			to: email,
			subject: { id: "A new API key of your account at {service}", values: { service } },
			paragraphs: [
				{
					id: "An operator of the service made an API key in your account. Rotate it on this page to get its secret, or revoke it:",
				},
				link,
			],
			link,
		});
	return owners.length > 0;
}

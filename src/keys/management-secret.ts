import { createSecretFormat, type DigestFunction, type Secret } from "./secret.ts";

/** A management key's secret with correct form and checksum. A distinct type, so that no API key is passed. */
export type ManagementSecret = string & { readonly brand: "management secret" };

/** Stored digest of a management key's secret: 64 hex digits. */
export type ManagementKeyDigest = string & { readonly brand: "management key digest" };

/** Functions for these secrets, which differ from an API key's only in the prefix `tgm_<service>_`. */
export const {
	create: newManagementSecret,
	derive: derivedManagementSecret,
	parse: parseManagementSecret,
	shown: shownOfManagementSecret,
} = createSecretFormat<ManagementSecret>("tgm");

/** Digest with the pepper, as for API keys. The hashed text contains a space, so no API key has the same digest. */
export function managementDigest(digest: DigestFunction, secret: ManagementSecret): ManagementKeyDigest {
	return digest(`management ${secret}` as unknown as Secret) as string as ManagementKeyDigest;
}

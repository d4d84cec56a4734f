import { type Digest, type Secret, secretsOf } from "./secret.ts";

/** The text of a management key with correct form and checksum. The brand keeps API keys from being used as one. */
export type ManagementSecret = string & { readonly brand: "management secret" };

/** The stored form of a management key: 64 hex digits. */
export type ManagementKeyDigest = string & { readonly brand: "management key digest" };

/** Like an API key's secret, but with the prefix `tgm_<service>_`. */
export const {
	create: newManagementSecret,
	derive: derivedManagementSecret,
	parse: parseManagementSecret,
	shown: shownOfManagementSecret,
} = secretsOf<ManagementSecret>("tgm");

/** Under the pepper, like API keys. The hashed text contains a space, so no API key has this digest. */
export function managementDigest(digest: Digest, secret: ManagementSecret): ManagementKeyDigest {
	return digest(`management ${secret}` as unknown as Secret) as string as ManagementKeyDigest;
}

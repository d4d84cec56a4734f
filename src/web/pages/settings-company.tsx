import { Group, Select, Stack, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { type AccountView, api, type CompanyView } from "../api.ts";
import { roleName } from "../labels.ts";
import { CodeBlock } from "../parts/code.tsx";
import { CheckField } from "../parts/fields.tsx";
import { ActButton, fieldError, PanelForm } from "../parts/form.tsx";
import { ErrorMessage, LoadState, Notice, Panel } from "../parts/page.tsx";
import { useAction, useResource } from "../resource.ts";
import { rich, t } from "../texts.tsx";

const COMPANY_ROLES = ["admin", "developer", "billing", "viewer"] as const;
const FIELDS = ["issuer", "clientId", "domain", "roleClaim"] as const;
type CompanyRole = (typeof COMPANY_ROLES)[number];
const NOBODY = "nobody";
const ROLE_CHOICES = [
	{ value: NOBODY, label: t("None: people without a role cannot sign in") },
	...COMPANY_ROLES.map((role) => ({ value: role, label: roleName(role) })),
];

/** Settings of a company's single sign-on: an OpenID Connect provider for the company's domain. */
export function CompanyPanel({ account }: { account: AccountView }) {
	const company = useResource(`company ${account.id}`, () => api.companySignIn(account.id));
	const [open, setOpen] = useState(false);
	const { data } = company;
	return (
		<Panel title={t("Single sign-on")}>
			<LoadState of={company} />
			{data?.settings && <Proof account={account} company={data} reload={company.reload} />}
			{data &&
				(data.settings || open ? (
					<CompanyForm key={JSON.stringify(data.settings)} {...{ account, company: data }} reload={company.reload} />
				) : (
					<Group justify="space-between" gap="xs">
						<p>
							{t(
								"Members can sign in with your OpenID Connect provider, such as Entra, Okta, Google Workspace or Keycloak.",
							)}
						</p>
						<ActButton size="sm" label={t("Set up single sign-on")} onClick={() => setOpen(true)} />
					</Group>
				))}
		</Panel>
	);
}

function Proof(props: { account: AccountView; company: CompanyView; reload: () => Promise<void> }) {
	const { account, company } = props;
	const verify = useAction(() => api.verifyCompany(account.id), props.reload);
	if (company.verifiedAtMs !== null)
		return (
			<Notice kind="ok">
				{rich("{domain} is verified. People with its addresses can sign in.", { domain: company.settings?.domain })}
			</Notice>
		);
	if (company.record === null) return null;
	return (
		<Stack gap="sm">
			<Notice kind="warn">
				{rich("Verify the domain: add a DNS TXT record named {name} with this value, and keep it.", {
					name: company.record.name,
				})}
			</Notice>
			<CodeBlock code={company.record.text} label={t("Copy the value of the record")} />
			{verify.error && <ErrorMessage error={verify.error} />}
			<Group justify="flex-end" gap="xs">
				<ActButton size="sm" label={t("Verify the domain")} action={verify} />
			</Group>
		</Stack>
	);
}

function CompanyForm(props: { account: AccountView; company: CompanyView; reload: () => Promise<void> }) {
	const { account, company } = props;
	const before = company.settings;
	const [draft, setDraft] = useState(() => draftOf(before));
	const set = (changes: Partial<CompanyDraft>) => setDraft({ ...draft, ...changes });
	const save = useAction(() => api.setCompanySignIn(account.id, settingsOf(draft)), props.reload);
	const remove = useAction(() => api.removeCompany(account.id), props.reload);
	const text = (name: (typeof FIELDS)[number], label: string, more: Record<string, unknown>) => (
		<TextInput
			label={label}
			withAsterisk={false}
			value={draft[name]}
			error={fieldError(save, name)}
			onChange={(event) => set({ [name]: event.currentTarget.value })}
			{...more}
		/>
	);
	return (
		<PanelForm
			action={save}
			act={t("Save")}
			error={save.error ?? remove.error}
			fields={FIELDS}
			more={before && <ActButton size="sm" look="danger" label={t("Remove")} action={remove} />}
		>
			{text("domain", t("Email domain"), { required: true, placeholder: "example.com" })}
			{text("issuer", t("Issuer"), { required: true, type: "url", placeholder: "https://login.example.com" })}
			{text("clientId", t("Client ID"), { required: true, autoComplete: "off" })}
			<TextInput
				label={t("Client secret")}
				type="password"
				autoComplete="off"
				description={t("Register {redirectUri} as the redirect URI.", { redirectUri: company.redirectUri })}
				placeholder={before ? t("Stored. Enter a new one to replace it.") : ""}
				required={before === null}
				withAsterisk={false}
				value={draft.clientSecret}
				onChange={(event) => set({ clientSecret: event.currentTarget.value })}
			/>
			<Select
				label={t("Default role")}
				data={ROLE_CHOICES}
				allowDeselect={false}
				value={draft.defaultRole}
				onChange={(value) => set({ defaultRole: value ?? NOBODY })}
			/>
			{text("roleClaim", t("Role claim"), { placeholder: "groups" })}
			{draft.roleClaim.trim() !== "" && (
				<Textarea
					label={t("Role values")}
					description={t("One per line, such as “engineers = developer”. Roles: {roles}. Applied at each sign-in.", {
						roles: COMPANY_ROLES.join(", "),
					})}
					autosize
					minRows={2}
					value={draft.values}
					onChange={(event) => set({ values: event.currentTarget.value })}
				/>
			)}
			<CheckField
				label={t("Treat the provider's addresses as verified, even without email_verified")}
				checked={draft.emailTrusted}
				onChange={(emailTrusted) => set({ emailTrusted })}
			/>
			<CheckField
				label={t("Require single sign-on: only owners can use a password")}
				checked={draft.required}
				onChange={(required) => set({ required })}
			/>
		</PanelForm>
	);
}

type CompanyDraft = ReturnType<typeof draftOf>;

function draftOf(before: CompanyView["settings"]) {
	return {
		issuer: before?.issuer ?? "",
		clientId: before?.clientId ?? "",
		clientSecret: "",
		domain: before?.domain ?? "",
		emailTrusted: before?.emailTrusted ?? false,
		roleClaim: before?.roleClaim ?? "",
		values: textOf(before?.roleValues ?? {}),
		defaultRole: before === null ? "viewer" : (before.defaultRole ?? NOBODY),
		required: before?.required ?? false,
	};
}

/** Returns the settings to send; an empty secret field (null) keeps the stored secret. */
function settingsOf(draft: CompanyDraft) {
	const { values, clientSecret, roleClaim, domain, defaultRole, ...rest } = draft;
	return {
		...rest,
		domain: domain.trim().toLowerCase(),
		clientSecret: clientSecret === "" ? null : clientSecret,
		roleClaim: roleClaim.trim() || null,
		roleValues: valuesOf(values),
		defaultRole: roleOf(defaultRole) ?? null,
	};
}

const roleOf = (text: string): CompanyRole | undefined => COMPANY_ROLES.find((role) => role === text);

function textOf(values: Readonly<Record<string, string>>): string {
	return Object.entries(values)
		.map(([value, role]) => `${value} = ${role}`)
		.join("\n");
}

/** Parses lines such as `value = role`. Lines without a valid role are ignored. */
function valuesOf(text: string): Record<string, CompanyRole> {
	const pairs = text.split("\n").flatMap((line) => {
		const at = line.lastIndexOf("=");
		const role = roleOf(line.slice(at + 1).trim());
		return at > 0 && role !== undefined ? [[line.slice(0, at).trim(), role] as const] : [];
	});
	return Object.fromEntries(pairs);
}

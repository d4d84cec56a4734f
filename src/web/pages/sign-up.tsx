import { Button, Checkbox } from "@mantine/core";
import { useState } from "react";
import type { Terms } from "../../catalog/brand.ts";
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from "../../console/views.ts";
import { api } from "../api.ts";
import { authApi } from "../auth-api.ts";
import { brand } from "../brand.ts";
import { AuthLayout } from "../parts/auth-layout.tsx";
import { EmailField, NameField, NewPasswordField } from "../parts/fields.tsx";
import { AuthForm } from "../parts/form.tsx";
import { MailSent } from "../parts/mail-sent.tsx";
import { Notice, Problem } from "../parts/problem.tsx";
import { useAction } from "../resource.ts";
import { Link } from "../router.tsx";
import { useSession } from "../session.tsx";
import { rich, t } from "../texts.tsx";
import { Providers, useNext } from "./sign-in.tsx";

export function SignUpPage() {
	const { config } = useSession();
	const { next, linkWithNext } = useNext();
	const [sentTo, setSentTo] = useState<string>();
	if (!config.signUp) {
		return (
			<AuthLayout title={t("Sign up")}>
				<Notice>{t("New accounts are by invitation only. Contact the operator of this service.")}</Notice>
			</AuthLayout>
		);
	}
	if (sentTo) {
		return (
			<AuthLayout title={t("Check your mail")} below={<Link to="/sign-in">{t("Sign in")}</Link>}>
				<MailSent email={sentTo} what="verify" />
			</AuthLayout>
		);
	}
	return (
		<AuthLayout
			title={t("Sign up")}
			below={rich("Signed up before? <link>Sign in</link>", { link: linkWithNext("/sign-in") })}
		>
			<SignUpForm next={next} onSent={setSentTo} />
			<Providers next={next} />
		</AuthLayout>
	);
}

function SignUpForm({ next, onSent }: { next: string; onSent: (email: string) => void }) {
	const [name, setName] = useState("");
	const [email, setEmail] = useState("");
	const [password, setPassword] = useState("");
	const signUp = useAction(async () => {
		if (password.length < PASSWORD_CHARS_MIN) return;
		const acceptedTerms = brand.terms?.version ?? null;
		await authApi.signUp({ name: name.trim(), email: email.trim(), password, next, acceptedTerms });
		onSent(email.trim());
	});
	return (
		<AuthForm action={signUp} act={t("Sign up")}>
			<NameField value={name} onChange={setName} />
			<EmailField autoComplete="email" value={email} onChange={setEmail} />
			<NewPasswordField maxLength={PASSWORD_CHARS_MAX} value={password} onChange={setPassword} />
			{brand.terms && <TermsBox terms={brand.terms} />}
		</AuthForm>
	);
}

function TermsBox({ terms }: { terms: Terms }) {
	return (
		<Checkbox
			required
			label={rich("I agree to the {link}", {
				link: (
					<a href={terms.url} target="_blank" rel="noreferrer">
						{rich("terms of {name}", { name: brand.name })}
					</a>
				),
			})}
		/>
	);
}

/** Asks a signed-in user to accept the terms: after a social sign-in or an invitation, or when the terms change. */
export function TermsPage({ terms }: { terms: Terms }) {
	const { refresh, signOut } = useSession();
	const accept = useAction(() => api.acceptTerms(terms.version), refresh);
	const leave = useAction(signOut);
	const below = (
		<>
			{leave.error && <Problem error={leave.error} />}
			<Button variant="subtle" size="xs" loading={leave.busy} onClick={() => void leave.run()}>
				{t("Sign out")}
			</Button>
		</>
	);
	return (
		<AuthLayout title={t("Terms of service")} below={below}>
			<AuthForm action={accept} act={t("Continue")}>
				<TermsBox terms={terms} />
			</AuthForm>
		</AuthLayout>
	);
}

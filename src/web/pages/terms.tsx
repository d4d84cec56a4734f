import { Button, Checkbox } from "@mantine/core";
import type { Terms } from "../../catalog/brand.ts";
import { api } from "../api.ts";
import { brand } from "../brand.ts";
import { AuthLayout } from "../parts/auth-layout.tsx";
import { Form } from "../parts/form.tsx";
import { Problem } from "../parts/problem.tsx";
import { useAction } from "../resource.ts";
import { useSession } from "../session.tsx";
import { rich, t } from "../texts.tsx";

/** Required by its form. */
export function TermsBox({ terms }: { terms: Terms }) {
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

/**
 * For a signed-in user who has not agreed: after another service's sign-in, an invitation, or a change of the terms.
 */
export function TermsPage({ terms }: { terms: Terms }) {
	const { refresh, signOut } = useSession();
	const accept = useAction(async () => {
		await api.acceptTerms(terms.version);
		await refresh();
	});
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
			<Form
				onSubmit={accept.run}
				error={accept.error}
				end={
					<Button type="submit" loading={accept.busy}>
						{t("Go on")}
					</Button>
				}
			>
				<TermsBox terms={terms} />
			</Form>
		</AuthLayout>
	);
}

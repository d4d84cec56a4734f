ALTER TABLE "api_key" ADD COLUMN "made_by" text;--> statement-breakpoint
-- Whose each key is, as far as the audit log tells; a replacement is the same person's.
with recursive made as (
  select e.subject as id, e.actor from audit_event e join console_user u on u.id = e.actor where e.action = 'key.create'
  union
  select k.replaced_by, m.actor from made m join api_key k on k.id = m.id where k.replaced_by is not null
)
update api_key k set made_by = m.actor from made m where m.id = k.id;

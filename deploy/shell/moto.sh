# shellcheck shell=bash
# Sourced by deploy/install_deps.sh, after environments.sh: moto, which imitates Amazon's services,
# for the tests of data in buckets. Nothing of Lockstep needs it.

moto_packages=(moto==5.2.5 boto3==1.44.8 botocore==1.44.8 s3transfer==0.19.3 jmespath==1.1.0
  python-dateutil==2.9.0.post0 six==1.17.0 urllib3==2.8.0 requests==2.34.2 certifi==2026.10.19.post1
  charset-normalizer==3.5.2 idna==3.20 responses==0.26.3 xmltodict==1.0.4 PyYAML==6.0.4
  py-partiql-parser==0.6.3 cryptography==50.0.2 cffi==2.1.1 pycparser==3.12 Werkzeug==3.1.9
  Jinja2==3.1.6 MarkupSafe==3.0.4 Flask==3.1.3 flask-cors==6.0.5 blinker==1.9.0 click==8.5.1
  itsdangerous==2.2.0)

# Its Python; nothing where it is not complete.
moto_python() { pinned_python moto "${moto_packages[@]}"; }

install_moto() {  # install_moto LOG
  install_wheels moto "the tests" "40 MB to download, 140 MB on disk" 300 "$1" \
    moto "${moto_packages[@]}"
}
